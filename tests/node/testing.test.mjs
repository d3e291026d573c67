// The scripted server for users' own tests.

import assert from 'node:assert/strict'
import test from 'node:test'

import { AcquireTimeoutError, Client, DeniedError, InvalidArgumentError } from 'locktender'
import { ScriptedServer } from 'locktender/testing'

import { until } from './support/observe.mjs'

test('it says what it is told, and then behaves', async () => {
  const server = new ScriptedServer(`
    acquire: busy owner=somebody ttl=500
    acquire: fail denied
  `)
  const client = new Client(server)
  assert.equal(server.unplayed, 2)
  assert.equal(await client.lock('orders').tryAcquire(), null)
  await assert.rejects(client.lock('orders').tryAcquire(), DeniedError)
  const owner = await client.withLock('orders', (held) => held.owner)
  assert.equal(server.unplayed, 0)
  assert.deepEqual(server.seen.map(({ op }) => op), ['acquire', 'acquire', 'acquire', 'release'])
  assert.deepEqual(server.seen.at(-1), { op: 'release', lockName: 'orders', owner })
})

test('a loss is scripted', async () => {
  const client = new Client(new ScriptedServer('always extend: gone'))
  const held = await client.lock('orders', { ttlMs: 2_500 }).acquire()
  await until(() => held.signal.aborted)
  assert.equal(held.signal.reason.reason, 'missing')
})

test('several of them are a quorum', async () => {
  const servers = [1, 2, 3].map((at) => new ScriptedServer('always acquire: busy owner=x ttl=500', { name: `s${at}` }))
  await assert.rejects(new Client(servers).lock('orders', { waitMs: 0 }).acquire(), AcquireTimeoutError)
  assert.ok(servers.every(({ seen }) => seen.length))
})

test('steps are added, and an answer that never comes is waited for as long as it says', async () => {
  const server = new ScriptedServer(undefined, { name: 'later', responseTimeoutMs: 50 })
  assert.equal(server.play('acquire: silence'), server)
  assert.ok((await new Client(server).lock('orders', { waitMs: 5_000 }).acquire()).isValid())
  assert.equal(server.unplayed, 0)
})

test('a script or an option that makes no sense is refused', () => {
  for (const script of ['nonsense', 'acquire: explode', 'dance: busy', 'extend: quarantine', 7, null]) {
    assert.throws(() => new ScriptedServer(script), InvalidArgumentError, String(script))
  }
  for (const options of [null, 7, { responseTimeoutMs: -1 }, { responseTimeoutMs: '1' }, { name: 7 }, { nam: 'x' }]) {
    assert.throws(() => new ScriptedServer(undefined, options), InvalidArgumentError)
  }
})
