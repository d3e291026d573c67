// The clock for users' own tests: it moves renewals, expiry, waits and late answers, on servers of this process alone.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { AcquireTimeoutError, Client, InvalidArgumentError, UnavailableError } from 'locktender'
import { Clock, ScriptedServer } from 'locktender/testing'

import { startServer } from './support/server.mjs'

// Tests stay ten seconds away from its end: a machine may stall.
const TTL = 60_000
const HOUR = 3_600_000

function clockOf(t) {
  const clock = new Clock()
  t.after(() => clock.close())
  return clock
}

function clientOf(t, servers = `memory://${t.name}`, options) {
  const client = new Client(servers, { ttlMs: TTL, ...options })
  t.after(() => client.close())
  return client
}

/** What the promise came to, or `pending`. */
async function now(promise) {
  return await Promise.race([promise, Promise.resolve('pending')])
}

test('a hold that nobody renews expires, and its holder is told', async (t) => {
  const [clock, client] = [clockOf(t), clientOf(t)]
  const held = await client.lock('orders', { renew: false }).acquire()
  const events = []
  client.on('lost', (event) => events.push(event.reason))
  const { lost, signal } = held
  await clock.advance(50_000)
  assert.deepEqual([held.isValid(), signal.aborted, await now(lost)], [true, false, 'pending'])
  assert.equal(await client.lock('orders').tryAcquire(), null)
  await clock.advance(10_000)
  assert.deepEqual([held.isValid(), signal.aborted, signal.reason.reason, events], [false, true, 'expired', ['expired']])
  assert.equal((await lost).code, 'LOCK_LOST')
  await clock.advance(1) // a server keeps a key through the millisecond in which its ttl ends
  const next = await client.lock('orders').tryAcquire()
  assert.ok(next.fence > held.fence)
})

test('a waiter has the lock of a client that died, once its key expires', async (t) => {
  const [clock, client] = [clockOf(t), clientOf(t)]
  // A hand-over that nobody adopts leaves the key as a client that is killed does.
  const died = await client.lock('orders').acquire()
  died.handOver()
  const waiting = client.lock('orders').acquire()
  await clock.advance(50_000)
  assert.equal(await now(waiting), 'pending')
  await clock.advance(11_000)
  assert.ok((await waiting).isValid())
})

test('renewals keep a long job alive over an hour', async (t) => {
  const clock = clockOf(t)
  const three = [0, 1, 2].map((number) => new ScriptedServer(undefined, { name: `s${number}` }))
  for (const servers of ['memory://an hour', new ScriptedServer(), three]) {
    const client = clientOf(t, servers)
    await client.initializeQuorum()
    let renewals = 0
    client.on('renewed', () => (renewals += 1))
    const worked = await client.withLock('orders', async (held) => {
      await clock.advance(HOUR)
      assert.equal(await client.lock('orders').tryAcquire(), null)
      return held.isValid() && held.remainingMs() > 35_000 && !held.signal.aborted
    })
    assert.ok(worked)
    // A little before every third of the ttl.
    assert.ok(renewals >= 180 && renewals < 195, `${renewals} renewals`)
  }
})

test('a wait times out', async (t) => {
  const [clock, client] = [clockOf(t), clientOf(t)]
  const held = await client.lock('orders').acquire()
  const waiting = client.lock('orders', { waitMs: 60_000 }).acquire()
  const failed = waiting.catch((error) => error)
  await clock.advance(50_000)
  assert.equal(await now(failed), 'pending')
  await clock.advance(10_000)
  const error = await failed
  assert.ok(error instanceof AcquireTimeoutError)
  assert.equal(error.holder, held.owner)
})

test('a server that stops answering loses a hold at the end of its ttl', async (t) => {
  const server = new ScriptedServer('always extend: silence')
  const [clock, client] = [clockOf(t), clientOf(t, server)]
  const held = await client.lock('orders').acquire()
  await clock.advance(50_000)
  assert.ok(held.isValid())
  await clock.advance(10_000)
  assert.equal(held.signal.reason.reason, 'expired')
  assert.ok(server.seen.filter(({ op }) => op === 'extend').length > 2)
})

test('late answers, and the patience with a server, keep to the clock', async (t) => {
  const clock = clockOf(t)
  const late = clientOf(t, new ScriptedServer('acquire: real delay=30000'), { responseTimeoutMs: 60_000 }).lock('orders').acquire()
  await clock.advance(20_000)
  assert.equal(await now(late), 'pending')
  await clock.advance(10_000)
  assert.ok((await late).isValid())
  const dead = clientOf(t, new ScriptedServer('always any: silence'), { unavailableAfterMs: 60_000 })
  const failed = dead.lock('orders').acquire().catch((error) => error)
  await clock.advance(50_000)
  assert.equal(await now(failed), 'pending')
  await clock.advance(11_000)
  assert.ok((await failed) instanceof UnavailableError)
})

test('the longest hold ends at its time', async (t) => {
  const [clock, client] = [clockOf(t), clientOf(t)]
  const held = await client.lock('orders', { maxHoldMs: 600_000 }).acquire()
  await clock.advance(590_000)
  assert.ok(held.isValid())
  await clock.advance(10_000)
  assert.equal(held.signal.reason.reason, 'max_hold')
})

test('a server with a clock of its own is refused', async (t) => {
  const server = await startServer(t)
  const [clock, client] = [clockOf(t), clientOf(t, server.url)]
  await clock.advance(HOUR)
  await client.withLock('orders', async (held) => {
    const message = /has a clock of its own: use memory:\/\/ or a scripted server$/
    await assert.rejects(clock.advance(HOUR), (error) => error instanceof InvalidArgumentError && message.test(error.message))
    assert.ok(held.isValid())
  })
  await clock.advance(HOUR)
})

test('one test has the clock, and moves it forward alone', async (t) => {
  const clock = clockOf(t)
  assert.throws(() => new Clock(), InvalidArgumentError)
  for (const ms of [-1, NaN, Infinity, 367 * 86_400_000, '30', null, undefined]) await assert.rejects(clock.advance(ms), InvalidArgumentError)
  await clock.advance(0)
  clock.close()
  await assert.rejects(clock.advance(1), /given back/)
  const again = new Clock()
  again[Symbol.dispose]()
  new Clock().close()
})
