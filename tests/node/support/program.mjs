// Programs that end with their test, also if the test is killed.

import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import path from 'node:path'

import { root } from './checkout.mjs'
import { PATIENCE_MS } from './observe.mjs'

/** A program that prints one number when it is ready and ends with its standard input. It keeps no process alive. */
export class Program {
  #child
  #lines
  #ended

  static async start(...command) {
    const program = new this()
    await program.run(command.map(String))
    return program
  }

  async run([file, ...args]) {
    // Its own session: a Ctrl-C meant for the test is not meant for it.
    this.#child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'], detached: true })
    this.#ended = once(this.#child, 'exit')
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]()
    this.number = Number(await this.#answer())
    this.#keepAlive(false)
  }

  async #answer() {
    const { value, done } = await this.#lines.next()
    if (done) throw new Error(`${this.#child.spawnfile} ended with ${this.#child.exitCode}`)
    return value
  }

  #keepAlive(wanted) {
    for (const handle of [this.#child, this.#child.stdin, this.#child.stdout]) wanted ? handle.ref() : handle.unref()
  }

  /** One command at a time. */
  async ask(...words) {
    this.#keepAlive(true)
    this.#child.stdin.write(words.join(' ') + '\n')
    const answer = await this.#answer()
    this.#keepAlive(false)
    return answer
  }

  get ended() {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  async wait() {
    this.#child.ref()
    await this.#ended
  }

  async close() {
    this.#child.stdin.destroy()
    await this.wait()
    this.#child.stdout.destroy()
  }
}

/** A running server with its own directory; tests/tether says how it ends. */
export class Tether extends Program {
  static start(directory, ...command) {
    return super.start(path.join(root, 'tests/tether'), directory, ...command)
  }

  get pid() {
    return this.number
  }

  async kill() {
    process.kill(this.pid, 'SIGKILL')
    await this.wait()
    await this.close()
  }

  /** Stops the server and waits until it stands still. */
  pause() {
    process.kill(this.pid, 'SIGSTOP')
    const status = `/proc/${this.pid}/stat`
    const deadline = Date.now() + PATIENCE_MS
    // Where there is no /proc the signal has to be trusted.
    while (existsSync(status) && !readFileSync(status, 'utf8').split(') ').at(-1).startsWith('T')) {
      if (Date.now() > deadline) throw new Error(`pid ${this.pid} does not stop`)
    }
  }

  resume() {
    process.kill(this.pid, 'SIGCONT')
  }
}
