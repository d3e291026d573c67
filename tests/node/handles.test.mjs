// Open handles: what a tool that looks for them, such as `jest --detectOpenHandles`, sees of the package.

import assert from 'node:assert/strict'
import { createHook } from 'node:async_hooks'
import path from 'node:path'
import test from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import { root } from './support/checkout.mjs'
import { until } from './support/observe.mjs'
import { sharedServer } from './support/server.mjs'

const ours = path.join(root, 'bindings-node')
const open = new Map()

Error.stackTraceLimit = 100
createHook({
  init(id, type) {
    if (type !== 'PROMISE' && new Error().stack.includes(ours)) open.set(id, type)
  },
  destroy(id) {
    open.delete(id)
  },
}).enable()

// Loaded only now, so that what the import opens is seen.
const { Client } = await import('locktender')
const atFirst = [...open.values()]

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc')

const memory = `memory://${process.pid}-handles`
const nothing = () => until(() => open.size === 0)

test('an import opens nothing', () => {
  assert.deepEqual(atFirst, [])
})

test('the first client opens a handle, and the end of the last one closes it', async () => {
  const server = await sharedServer()
  for (let round = 0; round < 3; round++) {
    const [first, second] = [new Client(memory), new Client(server.url)]
    assert.equal(open.size, 1)
    await first.withLock('first', () => second.withLock('second', () => undefined))
    await first.close()
    await second.withLock('second', () => undefined)
    assert.equal(open.size, 1)
    await second.close()
    await nothing()
  }
})

test('a client that could not be made leaves no handle', async () => {
  assert.throws(() => new Client('nonsense://there'), { code: 'INVALID_ARGUMENT' })
  await nothing()
})

test('a client that is collected leaves no handle', async () => {
  void new Client(memory).withLock('collected', () => undefined)
  await until(() => {
    collect()
    return open.size === 0
  })
})

test('a call of a closed client is answered, and leaves no handle', async () => {
  const client = new Client(memory)
  const lock = client.lock('closed')
  await client.close()
  await nothing()
  for (const call of [() => lock.acquire(), () => lock.inspect()]) await assert.rejects(call, { code: 'CLOSED' })
  await client.close()
  await nothing()
})

test('the end of a hold comes out although its client is closed', async () => {
  const client = new Client(memory)
  const [waited, asked] = await Promise.all(['waited', 'asked'].map((name) => client.lock(name).acquire()))
  const { lost, signal } = waited
  await client.close()
  assert.deepEqual([(await lost).reason, (await asked.lost).reason, signal.aborted], ['closed', 'closed', true])
  await nothing()
})

test('an aborted call leaves no handle', async () => {
  const client = new Client(memory)
  const held = await client.lock('aborted').acquire()
  await assert.rejects(client.lock('aborted').acquire({ signal: AbortSignal.timeout(20) }), { name: 'TimeoutError' })
  await held.release()
  await client.close()
  await nothing()
})
