// Node programs in separate processes: their exit, signals, and a blocked event loop.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

import { root } from './checkout.mjs'

/** What a whole program may take: only a hang takes longer. */
const PROGRAM_MS = 120_000

// An unhandled rejection ends a program with an error; a warning is on its standard error: both fail `ending`.
const HEAD = `
import { Client, configure, lock } from 'locktender'
import { setTimeout as sleep } from 'node:timers/promises'
const [url, name] = process.argv.slice(1)
const say = (...words) => process.stdout.write(words.join(' ') + '\\n')
const block = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
const heard = () => new Promise((resolve) => process.stdin.once('data', resolve))
`

/** A running program: the lines it prints, what it is told, how it ends. */
export class Script {
  #child
  #lines
  #ended
  #errors = ''

  constructor(program, args, flags, limit) {
    const command = [...flags, '--input-type=module', '--eval', HEAD + program, ...args.map(String)]
    this.#child = spawn(process.execPath, command, { cwd: root, stdio: 'pipe', timeout: limit, killSignal: 'SIGKILL' })
    this.#child.stderr.on('data', (data) => (this.#errors += data))
    this.#child.stdin.on('error', () => {}) // it has ended, as `ending` tells
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]()
    this.#ended = once(this.#child, 'close')
  }

  async line() {
    const { value, done } = await this.#lines.next()
    assert.ok(!done, `the program ended: ${this.#errors}`)
    return value
  }

  tell(text = '') {
    this.#child.stdin.write(`${text}\n`)
  }

  signal(signal) {
    this.#child.kill(signal)
  }

  /** Its end, which must be with this code or signal, and without a word on its standard error; the lines not yet read. */
  async ending(expected = 0) {
    this.#child.stdin.end()
    const rest = []
    for await (const line of this.#lines) rest.push(line)
    const [code, signal] = await this.#ended
    assert.deepEqual([signal ?? code, this.#errors], [expected, ''])
    return rest
  }
}

/** Starts a program that has `url`, `name`, `say(…)`, `block(ms)` and `heard()`; it ends with the test `t`, and after `limit` ms. */
export function start(t, program, server, name, { flags = [], more = [], limit = PROGRAM_MS } = {}) {
  const script = new Script(program, [server.url, name, ...more], flags, limit)
  t.after(() => script.signal('SIGKILL'))
  return script
}

/** Runs a program to its end, which must be a good and silent one; the lines that it printed. */
export function run(t, program, server, name, options) {
  return start(t, program, server, name, options).ending()
}
