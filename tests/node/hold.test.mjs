// A hold: what the contract can't say of its data, extension, loss, release and hand-over.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { inspect } from 'node:util'

import { Client, InvalidArgumentError, LockLostError, NotHeldError, UnavailableError } from 'locktender'
import { ScriptedServer } from 'locktender/testing'

import { LOAD_MS, PATIENCE_MS, timed, until } from './support/observe.mjs'
import { startProxy } from './support/proxy.mjs'
import { sharedServer, startServer } from './support/server.mjs'

const server = await sharedServer()
// An attempt that isn't repeated may meet a stalled machine.
const client = new Client(server.url, { responseTimeoutMs: PATIENCE_MS })
after(() => client.close())

test('name, owner and fence are data', async (t) => {
  const held = await client.lock(t.name).acquire()
  assert.deepEqual([held.name, await server.holder(t.name)], [t.name, held.owner])
  assert.ok(Number.isSafeInteger(held.fence) && held.fence > 0)
  assert.deepEqual(JSON.parse(JSON.stringify(held)), { name: t.name, owner: held.owner, fence: held.fence })
  assert.match(inspect(held), /^Hold \{\n? *name: .*owner: 'host=.*fence: \d+.*remainingMs: \d/s)
  assert.ok(held.isValid() && held.remainingMs() > 9_000 && held.remainingMs() <= 10_000)
  held.check()
  await held.release()
  assert.deepEqual([held.isValid(), held.remainingMs()], [false, 0])
  assert.throws(() => held.check(), NotHeldError)
})

test('extensions at the same time all succeed, in order', async (t) => {
  const held = await client.lock(t.name).acquire()
  await Promise.all([held.extend({ ttlMs: 20_000 }), held.extend({ byMs: 20_000 }), held.extend({ ttlMs: 30_000 }), held.extend({ byMs: 1_000 })])
  assert.ok(held.remainingMs() > 29_000)
  await held.release()
})

test('what is no time, and what is not named, is refused by extend', async (t) => {
  const held = await client.lock(t.name).acquire()
  for (const bad of [NaN, Infinity, -Infinity, -1, '5', true, null, {}, 10n, 1e300, new Date()]) {
    await assert.rejects(held.extend({ ttlMs: bad }), InvalidArgumentError)
    await assert.rejects(held.extend({ byMs: bad }), InvalidArgumentError)
  }
  await assert.rejects(held.extend(60), /^InvalidArgumentError: options: write extend\(\{ ttlMs \}\) or extend\(\{ byMs \}\), in milliseconds \(given: 60\)/)
  await assert.rejects(held.extend({ ttl: 60 }), /^InvalidArgumentError: ttl: .*there are ttlMs, byMs/)
  await assert.rejects(held.extend({ ttlMs: 60_000, byMs: 1 }), /^InvalidArgumentError: byMs: .*not both/)
  held.check()
  await held.release()
})

test('a second release, and all else afterwards, says that nothing is held', async (t) => {
  const held = await client.lock(t.name).acquire()
  assert.deepEqual(await held.release(), { outcome: 'released', nextOwner: null, nextFence: null, overrunMs: 0, keptMs: 0 })
  for (const call of [() => held.release(), () => held.extend(), () => held.extend({ byMs: 1 })]) await assert.rejects(call(), NotHeldError)
  assert.throws(() => held.handOver(), NotHeldError)
})

test('signal is one object, aborted by a loss and not by a release', async (t) => {
  const held = await client.lock(t.name).acquire()
  assert.ok(held.signal instanceof AbortSignal)
  assert.equal(held.signal, held.signal)
  await held.release()
  const after = await client.lock(t.name, { ttlMs: 3_000, maxHoldMs: 300 }).acquire()
  await until(() => !after.isValid())
  assert.equal(after.signal.aborted, true) // first asked for after the loss
  assert.equal(after.signal.reason.reason, 'max_hold')
  assert.equal(held.signal.aborted, false)
})

test('a signal that is looked at without an event loop in between is aborted after a loss', async (t) => {
  const held = await client.lock(t.name, { ttlMs: 3_000, maxHoldMs: 1_500 }).acquire()
  let told = 0
  held.signal.addEventListener('abort', () => told++)
  const deadline = performance.now() + PATIENCE_MS
  while (!held.signal.aborted) assert.ok(performance.now() < deadline)
  assert.ok(held.signal.reason instanceof LockLostError)
  assert.deepEqual([held.isValid(), held.signal.reason.lockName, told], [false, t.name, 1])
  await held[Symbol.asyncDispose]()
  assert.equal(told, 1)
})

test('tickets that are none are refused, and an orAcquire that is neither true nor false', async () => {
  for (const ticket of ['', 'nonsense', 7, undefined, null, '\ud800']) await assert.rejects(client.adopt(ticket), InvalidArgumentError)
  await assert.rejects(client.adopt('', { orAcquire: 1 }), { code: 'INVALID_ARGUMENT', message: /^orAcquire: must be true or false/ })
})

test('a disposal gives back, and does not reject for a loss that the program knows', async (t) => {
  const held = await client.lock(t.name, { ttlMs: 300 }).acquire()
  assert.equal(await held[Symbol.asyncDispose](), undefined)
  assert.equal(await server.command('EXISTS', t.name), 0)
  await held[Symbol.asyncDispose]()
  const lost = await client.lock(t.name, { ttlMs: 300, maxHoldMs: 50 }).acquire()
  await until(() => !lost.isValid())
  await lost[Symbol.asyncDispose]()
})

test('after a disposal another client gets the lock at once', async (t) => {
  const proxy = await startProxy(t, server)
  const distant = new Client(proxy.url, { responseTimeoutMs: PATIENCE_MS })
  const held = await distant.lock(t.name).acquire()
  await (await client.lock(`${t.name} 2`).acquire()).release() // so that the other client is connected
  await proxy.latency(500, 0)
  await held[Symbol.asyncDispose]()
  const next = await client.lock(t.name).tryAcquire()
  assert.ok(next, 'the disposal did not wait for its release')
  await next.release()
  await distant.close()
})

test('a disposal while the server is gone ends, and frees the process', async (t) => {
  const own = await startServer(t)
  const cut = new Client(own.url, { responseTimeoutMs: 500 })
  const held = await cut.lock(t.name, { ttlMs: 600_000 }).acquire()
  await own.kill()
  const { tookMs } = await timed(() => held[Symbol.asyncDispose]())
  assert.ok(tookMs < 500 + LOAD_MS, `took ${tookMs} ms`)
  await cut.close()
})

test('an unknown release rejects, and is called again for its outcome', async (t) => {
  const scripted = new ScriptedServer('always release: silence applied', { responseTimeoutMs: 300 })
  const unsure = new Client(scripted, { unavailableAfterMs: 1_500 })
  const held = await unsure.lock(t.name).acquire()
  await assert.rejects(held.release(), UnavailableError)
  scripted.play('always release: real')
  assert.equal((await held.release()).outcome, 'released')
  await unsure.close()
})

test('f09: a server killed under many holds is a loss for each, and no unhandled rejection', async (t) => {
  const own = await startServer(t)
  const unhandled = []
  const note = (error) => unhandled.push(error)
  process.on('unhandledRejection', note)
  t.after(() => process.off('unhandledRejection', note))
  const cut = new Client(own.url, { responseTimeoutMs: 500, ttlMs: 2_500 })
  const holds = await Promise.all(Array.from({ length: 50 }, (_, at) => cut.lock(`${t.name} ${at}`).acquire()))
  const watched = holds.map((held) => held.signal)
  await own.kill()
  await until(() => watched.every((signal) => signal.aborted), 3_500)
  assert.ok(watched.every(({ reason }) => reason instanceof LockLostError && reason.reason === 'expired'))
  assert.ok(holds.every((held) => !held.isValid()))
  await cut.close()
  assert.deepEqual(unhandled, [])
})
