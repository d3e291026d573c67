// Several holders at once: semaphores and readers. What the contract can't say of them.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import test from 'node:test'

import * as locktender from 'locktender'
import { Client, configure, Hold, InvalidArgumentError, Lock, LockLostError, NotHeldError } from 'locktender'

import { PATIENCE_MS, until } from './support/observe.mjs'
import { sharedServer } from './support/server.mjs'

/** Of one place, as many clients as are asked for. */
function clientsOf(t, url, count, options = {}) {
  // An attempt that isn't repeated may meet a stalled machine.
  const clients = Array.from({ length: count }, () => new Client(url, { responseTimeoutMs: PATIENCE_MS, ...options }))
  t.after(() => Promise.all(clients.map((client) => client.close())))
  return clients
}

const memory = () => `memory://${randomUUID()}`
const refused = (argument, why = /./) => (error) =>
  error instanceof InvalidArgumentError && error.message.startsWith(`${argument}: `) && why.test(error.message)
const isWaitedFor = (lock) => until(async () => (await lock.inspect())?.waiters > 0)

for (const [kind, urlOf] of [['a real server', async () => (await sharedServer()).url], ['a server in memory', memory]]) {
  test(`on ${kind}, as many hold a semaphore as it has permits`, async (t) => {
    const [one, two] = clientsOf(t, await urlOf(), 2)
    const [mine, theirs] = [one, two].map((client) => client.semaphore(t.name, { permits: 2, ttlMs: 9_000 }))
    assert.ok(mine instanceof Lock && mine.name === t.name)
    const holds = [await mine.acquire(), await theirs.acquire()]
    assert.ok(holds[0].fence < holds[1].fence)
    assert.equal(await theirs.tryAcquire(), null)
    await assert.rejects(one.semaphore(t.name, { permits: 2, waitMs: 20 }).acquire(), { code: 'ACQUIRE_TIMEOUT' })
    assert.equal(await one.lock(t.name).tryAcquire(), null)
    assert.equal(await one.readLock(t.name).tryAcquire(), null)
    const next = theirs.acquire()
    await isWaitedFor(mine)
    assert.equal((await holds[0].release()).outcome, 'released')
    const third = await next
    await holds[1].extend()
    assert.ok(third.fence > holds[1].fence && third.isValid() && holds[1].isValid())
    await Promise.all([third.release(), holds[1].release()])
    assert.equal(await mine.inspect(), null)
    const writer = await one.lock(t.name).acquire()
    assert.equal(await mine.tryAcquire(), null)
    await writer.release()
  })

  test(`on ${kind}, readers share a fence, and a writer waits for all of them`, async (t) => {
    const [one, two] = clientsOf(t, await urlOf(), 2)
    const readers = [await one.readLock(t.name).acquire(), await two.readLock(t.name, { ttlMs: 9_000 }).acquire()]
    assert.equal(readers[0].fence, readers[1].fence)
    // Fair: others may pass a waiter that has waited for less than a second.
    const writing = one.lock(t.name, { fair: true }).acquire()
    await isWaitedFor(two.readLock(t.name))
    assert.equal(await two.readLock(t.name).tryAcquire(), null, 'not past a writer that waits')
    const later = [1, 2].map(() => two.readLock(t.name, { fair: true }).acquire())
    await Promise.all(readers.map((reader) => reader.release()))
    const writer = await writing
    assert.ok(writer.fence > readers[0].fence)
    await writer.release()
    const fences = (await Promise.all(later)).map((reader) => reader.fence)
    assert.ok(fences[0] === fences[1] && fences[0] > writer.fence)
    await Promise.all((await Promise.all(later)).map((reader) => reader.release()))
  })

  test(`on ${kind}, a writer's hold becomes a reader's, and a reader's is adopted`, async (t) => {
    const [one, two] = clientsOf(t, await urlOf(), 2)
    const writer = await one.lock(t.name, { ttlMs: 9_000, minHoldMs: 8_000 }).acquire()
    const waiting = two.readLock(t.name).acquire()
    await isWaitedFor(one.lock(t.name))
    const [lost, { signal }] = [writer.lost, writer]
    const reader = await writer.downgrade()
    assert.ok(reader instanceof Hold && reader.name === t.name && reader.fence > writer.fence)
    assert.deepEqual([await lost, signal.aborted, writer.isValid(), reader.isValid()], [null, false, false, true])
    const beside = await waiting
    assert.equal(beside.fence, reader.fence)
    for (const call of [() => writer.downgrade(), () => writer.release()]) await assert.rejects(call(), NotHeldError)
    await assert.rejects(reader.downgrade(), refused('downgrade'))
    const next = one.lock(t.name).acquire()
    await isWaitedFor(one.lock(t.name))
    const ticket = reader.handOver()
    const adopted = await two.adopt(ticket)
    assert.equal(adopted.fence, beside.fence)
    await assert.rejects(two.adopt(ticket), (error) => error instanceof LockLostError && error.reason === 'ended')
    for (const held of [adopted, beside]) assert.equal((await held.release()).outcome, 'released')
    await (await next).release()
  })

  test(`on ${kind}, inspect and locks show all holders`, async (t) => {
    const [client] = clientsOf(t, await urlOf(), 1, { prefix: `${randomUUID()}:` })
    const lock = client.lock(t.name)
    const seen = async () => {
      const [info, listed] = [await lock.inspect(), await client.locks()]
      assert.deepEqual(listed.map(({ name, holderCount }) => [name, holderCount]), [[t.name, info.holderCount]])
      return [info.owner, info.holderCount, info.holders, info.available]
    }
    const writer = await lock.acquire()
    assert.deepEqual(await seen(), [writer.owner, 1, [writer.owner], null])
    await writer.release()
    const permits = [await client.semaphore(t.name, { permits: 4, ttlMs: 60_000 }).acquire(), await client.semaphore(t.name, { permits: 4, ttlMs: 30_000 }).acquire()]
    const [longest, shortest] = permits.map(({ owner }) => owner)
    assert.deepEqual(await seen(), [longest, 2, [shortest, longest], 2])
    assert.equal((await lock.forceRelease({ owner: shortest })).owner, shortest)
    assert.deepEqual(await seen(), [longest, 1, [longest], 3])
    await permits[0].release()
    const reader = await client.readLock(t.name).acquire()
    assert.deepEqual(await seen(), [reader.owner, 1, [reader.owner], null])
    await reader.release()
  })
}

test('withSemaphore and withReadLock run their bodies while they hold, and give them back', async (t) => {
  const [client] = clientsOf(t, memory(), 1)
  const [inside, most] = [new Set(), { permits: 3 }]
  const work = async (held) => {
    inside.add(held)
    assert.ok(held.isValid() && inside.size <= most.permits)
    await new Promise((resolve) => setTimeout(resolve, 5))
    inside.delete(held)
    return held.fence
  }
  const fences = await Promise.all(Array.from({ length: 12 }, () => client.withSemaphore(t.name, most, work)))
  assert.equal(new Set(fences).size, 12)
  const readers = await Promise.all([1, 2, 3].map(() => client.withReadLock(t.name, (held) => work(held))))
  assert.equal(new Set(readers).size, 1)
  assert.equal(await client.withReadLock(t.name, { ttlMs: 5_000 }, () => 'read'), 'read')
  const thrown = new Error('of the body')
  await assert.rejects(client.withSemaphore(t.name, { permits: 1 }, () => Promise.reject(thrown)), (error) => error === thrown)
  const signal = AbortSignal.abort(new Error('given up'))
  await assert.rejects(client.withSemaphore(t.name, { permits: 1, signal }, () => assert.fail('ran')), /given up/)
  await assert.rejects(client.withReadLock(t.name, { signal }, () => assert.fail('ran')), /given up/)
  assert.equal(await client.lock(t.name).inspect(), null)
})

test('tryWithSemaphore and tryWithReadLock say whether the body ran', async (t) => {
  const [client] = clientsOf(t, memory(), 1)
  const permit = () => client.tryWithSemaphore(t.name, { permits: 1, waitMs: 5_000 }, () => 'done')
  await client.withSemaphore(t.name, { permits: 1 }, async () => assert.deepEqual(await permit(), { ran: false }))
  assert.deepEqual(await permit(), { ran: true, result: 'done' })
  await client.withLock(t.name, async () => {
    assert.deepEqual(await client.tryWithReadLock(t.name, () => assert.fail('ran')), { ran: false })
  })
  assert.deepEqual(await client.tryWithReadLock(t.name, { ttlMs: 5_000 }, () => 'read'), { ran: true, result: 'read' })
})

test('permits must be given, from 1 to 10000', async (t) => {
  const [client] = clientsOf(t, memory(), 1)
  configure(memory())
  const range = /must be from 1 to 10000/
  const whole = /must be a whole number/
  const given = /must be given in the options: \{ permits: 5 \}/
  for (const [options, why] of [
    [undefined, given], [{}, given], [{ permits: undefined }, given], [{ ttlMs: 5_000 }, given], [{ permits: 0 }, range],
    [{ permits: 10_001 }, range], [{ permits: 2 ** 40 }, range], [{ permits: '5' }, whole], [{ permits: 1.5 }, whole], [{ permits: -1 }, whole],
    [{ permits: NaN }, whole], [{ permits: null }, whole],
  ]) {
    assert.throws(() => client.semaphore(t.name, options), refused('permits', why))
    for (const around of ['withSemaphore', 'tryWithSemaphore']) {
      for (const subject of [client, locktender]) {
        await assert.rejects(subject[around](t.name, options, () => assert.fail('ran')), refused('permits', why), `${around} ${JSON.stringify(options)}`)
      }
    }
    if (why === range) await assert.rejects(locktender.semaphore(t.name, options).acquire(), refused('permits', why))
    else assert.throws(() => locktender.semaphore(t.name, options), refused('permits', why))
  }
  assert.throws(() => client.semaphore(t.name, 5), refused('permits', given))
  for (const permits of [1, 10_000]) await client.withSemaphore(t.name, { permits }, () => undefined)
  assert.throws(() => client.lock(t.name, { permits: 5 }), refused('permits'))
})

test('a minHoldMs of their own is refused, and one of the client\'s is ignored', async (t) => {
  const [client] = clientsOf(t, memory(), 1, { minHoldMs: 5_000 })
  assert.throws(() => client.semaphore(t.name, { permits: 2, minHoldMs: 5_000 }), refused('minHoldMs', /one holder/))
  assert.throws(() => client.readLock(t.name, { minHoldMs: 5_000 }), refused('minHoldMs', /one holder/))
  for (const lock of [client.semaphore(t.name, { permits: 1 }), client.readLock(t.name)]) {
    const { keptMs } = await (await lock.acquire()).release()
    assert.equal(keptMs, 0)
  }
})

test('several servers are refused', async (t) => {
  const [quorum] = clientsOf(t, [memory(), memory(), memory()], 1)
  for (const make of [() => quorum.semaphore(t.name, { permits: 2 }), () => quorum.readLock(t.name)]) assert.throws(make, refused('name', /quorum/))
  await quorum.initializeQuorum()
  const writer = await quorum.lock(t.name).acquire()
  await assert.rejects(writer.downgrade(), refused('downgrade'))
  assert.ok(writer.isValid())
  await writer.release()
})

test('only a hold of a lock is downgraded, and only one of a reader or a writer is handed over', async (t) => {
  const [client] = clientsOf(t, memory(), 1)
  const permit = await client.semaphore('permit', { permits: 2 }).acquire()
  assert.throws(() => permit.handOver(), refused('handOver', /permit/))
  const holds = [permit, await client.job('job').begin(), await client.election('election').campaign()]
  for (const held of holds) {
    await assert.rejects(held.downgrade(), refused('downgrade'))
    assert.ok(held.isValid())
    await held.release()
  }
  await assert.rejects(permit.downgrade(), NotHeldError)
  const lost = await client.lock('lost').acquire()
  await client.lock('lost').forceRelease()
  await assert.rejects(lost.downgrade(), (error) => error instanceof LockLostError && error.reason === 'ended')
})

test('who reads and reads again behind a writer that waits may wait for itself, and the client says so', async (t) => {
  const [client, other] = clientsOf(t, memory(), 2)
  const warned = new Promise((resolve) => client.once('warning', resolve))
  const queued = new Promise((resolve) => other.once('queued', resolve))
  const prices = client.readLock(t.name)
  const reader = await prices.acquire()
  const writing = other.lock(t.name).acquire()
  await queued
  const again = prices.acquire()
  const { message, lockKind, holder } = await warned
  assert.match(message, /pass the hold down instead/)
  assert.deepEqual([lockKind, holder], ['read_lock', reader.owner])
  await reader.release()
  await (await writing).release()
  await (await again).release()
})

test('events, holds and metrics name the kind', async (t) => {
  const [client] = clientsOf(t, memory(), 1)
  const kinds = new Set()
  client.on('acquired', ({ lockKind }) => kinds.add(lockKind))
  const writer = await client.lock('c').acquire()
  const holds = [await client.semaphore('a', { permits: 2 }).acquire(), await client.readLock('b').acquire(), await writer.downgrade()]
  await until(() => kinds.size === 3)
  assert.deepEqual([...kinds].sort(), ['lock', 'read_lock', 'semaphore'])
  assert.deepEqual(client.holds().map(({ name, kind }) => [name, kind]), [['a', 'semaphore'], ['b', 'read_lock'], ['c', 'read_lock']])
  await Promise.all(holds.map((held) => held.release()))
  for (const [kind, count] of [['semaphore', 1], ['read_lock', 2]]) {
    assert.equal(client.metrics().value('locktender_acquires_total', { kind, end: 'acquired' }), count)
  }
})

test('the default client has them, too', async (t) => {
  const { semaphore, readLock, withSemaphore, tryWithSemaphore, withReadLock, tryWithReadLock } = locktender
  const [permit, reader] = [semaphore(t.name, { permits: 1 }), readLock(t.name)]
  const client = configure(memory())
  t.after(() => client.close())
  const held = await permit.acquire()
  assert.equal(await client.lock(t.name).tryAcquire(), null)
  assert.deepEqual(await tryWithSemaphore(t.name, { permits: 1 }, () => assert.fail('ran')), { ran: false })
  assert.deepEqual(await tryWithReadLock(t.name, () => assert.fail('ran')), { ran: false })
  await held.release()
  assert.equal(await withSemaphore(t.name, { permits: 1 }, ({ name }) => name), t.name)
  await withReadLock(t.name, async ({ fence }) => {
    const beside = await reader.acquire()
    assert.equal(beside.fence, fence)
    assert.equal(await withReadLock(t.name, { ttlMs: 5_000 }, (own) => own.fence), fence)
    await beside.release()
  })
  assert.deepEqual(await tryWithReadLock(t.name, { ttlMs: 5_000 }, () => 'read'), { ran: true, result: 'read' })
  assert.equal(await client.lock(t.name).inspect(), null)
})

test('a client that is closed ends a downgrade under way', async (t) => {
  const [client] = clientsOf(t, memory(), 1)
  const writer = await client.lock(t.name).acquire()
  const reader = writer.downgrade()
  await client.close()
  const left = await reader.catch((error) => error)
  assert.ok(left instanceof Hold ? !left.isValid() : ['CLOSED', 'LOCK_LOST'].includes(left.code), String(left))
})
