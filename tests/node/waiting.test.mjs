// Waiting: the values that a waiter sees. A waiter that gives up leaves nothing in the queue.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { AcquireTimeoutError, Client, InvalidArgumentError, lock } from 'locktender'

import { LOAD_MS, PATIENCE_MS, timed, until } from './support/observe.mjs'
import { start } from './support/script.mjs'
import { sharedServer } from './support/server.mjs'

const server = await sharedServer()
// An attempt that isn't repeated may meet a stalled machine.
const patient = { responseTimeoutMs: PATIENCE_MS }
const client = new Client(server.url, patient)
const rival = new Client(server.url, patient)
after(() => Promise.all([client.close(), rival.close()]))

// What a claim costs.
const CLAIM_MS = 200

const isEmpty = async (name) => (await server.line(name)).length === 0
const visit = async (recipe) => (await recipe.acquire()).release()

test('a timeout tells the rank', async (t) => {
  await client.withLock(t.name, async () => {
    const waiting = rival.lock(t.name, { waitMs: 200 }).acquire()
    await assert.rejects(waiting, (error) => error instanceof AcquireTimeoutError && error.rank === 0)
  })
})

test('an inspection shows the line', async (t) => {
  const held = await client.lock(t.name).acquire()
  const free = await client.lock(t.name).inspect()
  assert.deepEqual([free.waiters, free.queue], [0, []])
  const waiting = visit(rival.lock(t.name, { fair: true }))
  await until(async () => !(await isEmpty(t.name)))
  const { waiters, queue } = await client.lock(t.name).inspect()
  assert.equal(waiters, 1)
  assert.match(queue[0], /^f:[^:]+:\d+ .*pid=/)
  await held.release()
  await waiting
})

test('events tell the rank, and how long a hand-over took', async (t) => {
  const watched = new Client(server.url)
  t.after(() => watched.close())
  const seen = new Map()
  watched.on('event', (event) => seen.set(event.kind, event))
  for (let round = 0; round < 2; round++) { // the second time its subscription stands for sure
    const held = await client.lock(t.name).acquire()
    const visiting = visit(watched.lock(t.name))
    await until(async () => !(await isEmpty(t.name)))
    await held.release()
    await visiting
  }
  await until(() => seen.get('acquired')?.notifiedAgoMs > 0)
  assert.deepEqual([seen.get('queued').rank, seen.get('queued').tookMs, seen.get('queued').lockName], [0, null, t.name])
  assert.ok(seen.get('acquired').notifiedAgoMs >= 0 && seen.get('acquired').rank === null && seen.has('notified'))
})

test('fair is a yes or a no', () => {
  for (const fair of [0, 1, 'yes', null, [], {}]) {
    for (const refusing of [() => client.lock('a', { fair }), () => lock('a', { fair }), () => new Client(server.url, { fair })]) {
      assert.throws(refusing, (error) => error instanceof InvalidArgumentError && /^fair: must be true or false/.test(error.message))
    }
  }
})

test('fair is an option wherever options are', async (t) => {
  const fair = new Client(server.url, { fair: true })
  t.after(() => fair.close())
  const ticket = `locktender=1 key=${encodeURIComponent(t.name)} name=${encodeURIComponent(t.name)} ttl=10000 owner=somebody`
  const held = await client.lock(t.name).acquire()
  for (const wait of [
    (signal) => rival.lock(t.name, { fair: true }).acquire({ signal }),
    (signal) => rival.withLock(t.name, { fair: true, signal }, () => 'ran'),
    (signal) => rival.adopt(ticket, { fair: true, orAcquire: true, signal }),
    (signal) => fair.lock(t.name).acquire({ signal }),
  ]) {
    const abort = new AbortController()
    const waiting = assert.rejects(wait(abort.signal), { name: 'AbortError' })
    assert.match(await until(async () => (await server.line(t.name))[0]), /^f:/)
    abort.abort()
    await waiting
    await until(() => isEmpty(t.name), 2_000)
  }
  await held.release()
})

for (const fair of [false, true]) {
  test(`f13: an aborted wait leaves the line at once, fair: ${fair}`, async (t) => {
    const held = await client.lock(t.name, { ttlMs: 600_000 }).acquire()
    for (let round = 0; round < 40; round++) {
      const abort = new AbortController()
      const waiters = [1, 2, 3].map(() => rival.lock(t.name, { fair }).acquire({ signal: abort.signal }))
      const rejected = Promise.all(waiters.map((waiter) => assert.rejects(waiter, { name: 'AbortError' })))
      await sleep(Math.random() * 10)
      abort.abort()
      await rejected
    }
    await until(() => isEmpty(t.name), 2_000)
    await held.release()
  })
}

test('f13: a wait aborted while the lock is handed over passes it on', async (t) => {
  const took = []
  for (let round = 0; round < 25; round++) {
    const held = await client.lock(t.name, { ttlMs: 600_000 }).acquire()
    const abort = new AbortController()
    const quitter = rival.lock(t.name, { ttlMs: 600_000, fair: true }).acquire({ signal: abort.signal })
    const quit = quitter.then((got) => got.release(), (error) => assert.equal(error.name, 'AbortError'))
    await until(async () => (await server.line(t.name)).length === 1)
    const heir = visit(client.lock(t.name, { ttlMs: 600_000, fair: true }))
    await until(async () => (await server.line(t.name)).length === 2)
    const release = held.release()
    await sleep(Math.random() * 3)
    abort.abort()
    await Promise.all([quit, release])
    took.push((await timed(() => heir)).tookMs)
  }
  // A claim window of whoever left, at most: not a look, and not a ttl.
  assert.ok(Math.max(...took) < CLAIM_MS + LOAD_MS, `took ${took} ms`)
  await until(async () => (await isEmpty(t.name)) && !(await server.command('EXISTS', t.name)), 2_000)
})

for (const signal of ['SIGTERM', 'SIGKILL']) {
  test(`f20, f28: a waiter that got ${signal} delays the next one by a claim at most`, async (t) => {
    const held = await client.lock(t.name, { ttlMs: 600_000 }).acquire()
    const script = start(t, 'await new Client(url).lock(name, { ttlMs: 600_000, fair: true }).acquire()', server, t.name)
    await until(async () => (await server.line(t.name)).length === 1)
    const waiting = visit(rival.lock(t.name, { ttlMs: 600_000, fair: true }))
    await until(async () => (await server.line(t.name)).length === 2)
    script.signal(signal)
    await script.ending(signal)
    const { tookMs } = await timed(async () => {
      await held.release()
      await waiting
    })
    assert.ok(tookMs < CLAIM_MS + LOAD_MS, `took ${tookMs} ms`)
    await until(async () => !(await server.command('EXISTS', t.name, `{${t.name}}:~lt:queue`)))
  })
}

test('f28: close() ends the waits, and takes them out of the line', async (t) => {
  const held = await client.lock(t.name, { ttlMs: 600_000 }).acquire()
  const closing = new Client(server.url)
  const waiters = [true, false, true, false].map((fair) => closing.lock(t.name, { fair }).acquire())
  const rejected = Promise.all(waiters.map((waiter) => assert.rejects(waiter, { code: 'CLOSED' })))
  await until(async () => (await server.line(t.name)).length === 3)
  await closing.close()
  await rejected
  await until(() => isEmpty(t.name), 2_000)
  await held.release()
})
