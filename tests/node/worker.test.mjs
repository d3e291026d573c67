// Worker threads: each has its own clients, and may end at any moment.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { Worker } from 'node:worker_threads'

import { Client } from 'locktender'

import { PATIENCE_MS, until } from './support/observe.mjs'
import { startProxy } from './support/proxy.mjs'
import { run } from './support/script.mjs'
import { sharedServer } from './support/server.mjs'

const server = await sharedServer()
// An attempt that isn't repeated may meet a stalled machine.
const client = new Client(server.url, { responseTimeoutMs: PATIENCE_MS })
after(() => client.close())

/** Starts a worker that runs `program` with `Client`, `post`, `url` and `name`. */
function work(program, name, url = server.url, env = process.env) {
  const head = `
    const { Client } = require('locktender')
    const { parentPort, workerData: { url, name } } = require('node:worker_threads')
    const post = (value) => parentPort.postMessage(value)
    ;(async () => {${program}})()`
  const worker = new Worker(head, { eval: true, workerData: { url, name }, env })
  worker.on('error', (error) => assert.fail(error))
  return worker
}

const message = async (worker) => (await once(worker, 'message'))[0]

test('workers exclude each other and this thread', async (t) => {
  const program = `
    const client = new Client(url)
    let inside = []
    for (let at = 0; at < 20; at++) inside.push(await client.withLock(name, (held) => held.fence))
    post(inside)
    await client.close()`
  const workers = [1, 2, 3].map(() => work(program, t.name))
  const fences = (await Promise.all(workers.map(message))).flat()
  for (let at = 0; at < 20; at++) fences.push(await client.withLock(t.name, (held) => held.fence))
  assert.equal(new Set(fences).size, 80)
})

test('a worker is configured by its own environment', async (t) => {
  const program = `
    const { lock } = require('locktender')
    const { fields } = await lock(name).acquire().then((held) => (globalThis.held = held, lock(name).inspect()))
    post([fields.app, (await held.release()).outcome])`
  const worker = work(program, t.name, undefined, { LOCKTENDER_URL: server.url, LOCKTENDER_APP: 'worker' })
  assert.deepEqual(await message(worker), ['worker', 'released'])
})

test('a worker that ends by itself while it holds gives its lock back', async (t) => {
  const worker = work(`await new Client(url).lock(name, { ttlMs: 600_000 }).acquire()`, t.name)
  assert.deepEqual(await once(worker, 'exit'), [0])
  assert.equal(await server.command('EXISTS', t.name), 0)
})

test('a worker that is terminated while it holds gives its lock back', async (t) => {
  const worker = work(`globalThis.held = await new Client(url).lock(name, { ttlMs: 600_000 }).acquire(); post('held'); setInterval(() => {}, 1_000)`, t.name)
  assert.equal(await message(worker), 'held')
  await worker.terminate()
  await until(async () => !(await server.command('EXISTS', t.name)), 500)
})

test('a worker that is terminated before its garbage is looked at gives that back too', async (t) => {
  const program = `
    require('node:v8').setFlagsFromString('--expose-gc')
    const gc = require('node:vm').runInNewContext('gc')
    const client = new Client(url)
    await (async () => { await client.lock(name, { ttlMs: 600_000 }).acquire() })()
    await new Promise(setImmediate)
    gc()
    post(name)
    for (;;);`
  const worker = work(program, t.name)
  await message(worker)
  await worker.terminate()
  await until(async () => !(await server.command('EXISTS', t.name)), 1_000)
})

test('a worker in a busy loop keeps its lock', async (t) => {
  const worker = work(`
    const held = await new Client(url).lock(name, { ttlMs: 3_000 }).acquire()
    post('held')
    for (const end = performance.now() + 5_000; performance.now() < end;);
    post([held.isValid(), (await held.release()).outcome])`, t.name)
  assert.equal(await message(worker), 'held')
  assert.equal(await client.lock(t.name).tryAcquire(), null)
  assert.deepEqual(await message(worker), [true, 'released'])
})

test('terminate in the middle of acquires, many times, leaves no key and a sound process', async (t) => {
  const proxy = await startProxy(t, server)
  await proxy.latency(3, 3)
  const program = `
    const client = new Client(url)
    post('up')
    for (let at = 0; ; at++) await Promise.all([1, 2, 3, 4].map((each) => client.withLock(name + each, { ttlMs: 600_000 }, () => undefined)))`
  const ended = process.env.LOCKTENDER_LONG ? 100 : 20
  for (let round = 0; round < ended; round += 4) {
    const workers = [0, 1, 2, 3].map((at) => work(program, `${t.name} ${round} ${at} `, proxy.url))
    await Promise.all(workers.map(async (worker, at) => {
      await message(worker)
      await new Promise((resolve) => setTimeout(resolve, 5 * at + (round % 20))) // at different moments of an acquire
      await worker.terminate()
    }))
  }
  await until(async () => !(await server.command('KEYS', `${t.name} * ? ?`)).length, 1_000)
  assert.equal(await client.withLock(t.name, () => 'sound'), 'sound')
})

test('many workers at once do not wait for each other to end', async (t) => {
  const workers = Array.from({ length: 8 }, (_, at) => work(`
    const client = new Client(url, { ttlMs: 600_000 })
    await client.lock(name).acquire()
    client.lock(name).acquire().catch(() => {}) // would wait for ever
    post('waits')`, `${t.name} ${at}`))
  await Promise.all(workers.map(message))
  const began = performance.now()
  await Promise.all(workers.map((worker) => worker.terminate()))
  assert.ok(performance.now() - began < 2_000)
  assert.deepEqual(await server.command('KEYS', `${t.name} ?`), [])
})

test('a process that exits while its workers hold gives their locks back', async (t) => {
  const program = `
    const { Worker } = await import('node:worker_threads')
    const worker = new Worker(\`
      import { Client } from 'locktender'
      import { parentPort, workerData } from 'node:worker_threads'
      const [url, name] = workerData
      const client = new Client(url, { ttlMs: 600_000 })
      client.lock(name).acquire().then((held) => { globalThis.held = held; client.lock(name).acquire().catch(() => {}); parentPort.postMessage('held') })
    \`, { eval: true, workerData: [url, name] })
    worker.once('message', () => process.exit(0))`
  assert.deepEqual(await run(t, program, server, t.name), [])
  assert.equal(await server.command('EXISTS', t.name), 0)
})
