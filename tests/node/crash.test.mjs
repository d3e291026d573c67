// Work that ends its process or its worker: a crash counts as a failed attempt, an orderly exit gives the attempt back.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, test } from 'node:test'

import { Client } from 'locktender'

import { root } from './support/checkout.mjs'
import { sharedServer } from './support/server.mjs'

const server = await sharedServer()
const client = new Client(server.url)
after(() => client.close())

const JOB = `new Client(url, { responseTimeoutMs: 60_000 }).job(name, { maxAttempts: 1, ttlMs: 600_000 })`
const HEAD = `
  const { Client } = require('locktender')
  const { EventEmitter } = require('node:events')
  const { Worker, isMainThread, workerData } = require('node:worker_threads')
  const [url, name] = workerData ?? process.argv.slice(1)
  const work = (body) => ${JOB}.run(() => new Promise(() => { setInterval(() => {}, 60_000); setTimeout(body) })).catch(() => {})
  const worker = (program) => new Worker(process.env.HEAD + program, { eval: true, workerData: [url, name] })
`

/** Runs a program, and gives its exit code. */
async function codeOf(t, program) {
  const child = spawn(process.execPath, ['--eval', HEAD + program, server.url, t.name], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    env: { ...process.env, HEAD },
  })
  t.after(() => child.kill('SIGKILL'))
  child.on('message', () => child.kill('SIGTERM'))
  const [code, signal] = await once(child, 'exit')
  return signal ?? code
}

const crashes = {
  'an error event without a listener': [`work(() => new EventEmitter().emit('error', new Error('boom')))`, 'boom', 1],
  'a callback that throws': [`work(() => { throw new TypeError('boom') })`, 'boom', 1],
  'something odd that is thrown': [`work(() => { throw { code: 7 } })`, '{ code: 7 }', 1],
  'a rejection that nobody handles': [`work(() => { Promise.reject(new Error('boom')) })`, 'boom', 1],
  'a handler that exits': [`process.on('uncaughtException', () => process.exit(3)); work(() => { throw new Error('boom') })`, 'boom', 3],
  'an exit with a code': [`work(() => process.exit(4))`, 'the process exited with code 4', 4],
  'an error in a worker': [
    `worker("work(() => { throw new Error('boom') })").on('error', () => {})`, 'boom', 0],
  'an exit of a worker with a code': [`worker('work(() => process.exit(5))')`, 'the worker thread exited with code 5', 0],
  'an error of the main thread while a worker works': [
    `worker("work(() => require('node:worker_threads').parentPort.postMessage(1))").on('message', () => { throw new Error('boom') })`, 'boom', 1],
}
for (const [what, [program, error, code]] of Object.entries(crashes)) {
  test(`${what} is a failure of the work`, async (t) => {
    assert.equal(await codeOf(t, program), code)
    const { state, attempts, lastError } = await client.job(t.name).status()
    assert.deepEqual([state, attempts, lastError], ['dead', 1, error])
    assert.equal(await server.command('EXISTS', t.name), 0)
  })
}

const exits = {
  'an exit with code 0': [`work(() => process.exit(0))`],
  'a handler of SIGTERM that exits with 0': [`process.on('SIGTERM', () => process.exit(0)); work(() => process.send('ready'))`],
  'an exit long after an error that the program survived': [
    `process.on('uncaughtException', () => setTimeout(() => process.exit(0), 20)); work(() => { throw new Error('survived') })`],
  'a worker that ends by itself': [`worker('work(() => process.exit(0))')`],
  'a worker that is terminated': [
    `const one = worker("work(() => require('node:worker_threads').parentPort.postMessage(1))"); one.on('message', () => one.terminate())`],
}
for (const [what, [program]] of Object.entries(exits)) {
  test(`${what} gives the attempt back`, async (t) => {
    assert.equal(await codeOf(t, program), 0)
    const { state, attempts } = await client.job(t.name).status()
    assert.deepEqual([state, attempts], ['new', 0])
  })
}

test('an error that the program survives fails nothing, and a later exit says its code', async (t) => {
  const program = `
    process.once('uncaughtException', () => setTimeout(() => process.exit(6), 20))
    work(() => { throw new Error('survived') })`
  assert.equal(await codeOf(t, program), 6)
  assert.equal((await client.job(t.name).status()).lastError, 'the process exited with code 6')
})

test('an attempt that its work has ended before the crash keeps its end', async (t) => {
  const program = `
    ${JOB}.begin().then(async (attempt) => { await attempt.complete('sent'); throw new Error('late') })`
  assert.equal(await codeOf(t, program), 1)
  assert.deepEqual((await client.job(t.name).status()).result, 'sent')
})

test('copies of the package have one listener in common', async (t) => {
  const program = `
    process.on('warning', () => process.exit(99))
    const acquired = Array.from({ length: 20 }, (_, copy) => {
      for (const file of Object.keys(require.cache)) if (!file.endsWith('.node')) delete require.cache[file]
      return new (require('locktender').Client)(url).lock(name + copy, { ttlMs: 600_000 }).acquire()
    })
    Promise.all(acquired).then(() => process.exit(process.listenerCount('exit') + 10 * process.listenerCount('uncaughtExceptionMonitor')))`
  assert.equal(await codeOf(t, program), 11)
  assert.equal(await server.command('EXISTS', ...Array.from({ length: 20 }, (_, copy) => t.name + copy)), 0)
})
