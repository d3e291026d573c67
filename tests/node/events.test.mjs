// Events: of a client as an EventEmitter, of all clients on a diagnostics channel.

import assert from 'node:assert/strict'
import diagnostics from 'node:diagnostics_channel'
import { EventEmitter } from 'node:events'
import { after, test } from 'node:test'

import { Client, Hold } from 'locktender'

import { PATIENCE_MS, until } from './support/observe.mjs'
import { run } from './support/script.mjs'
import { sharedServer, startServer } from './support/server.mjs'

const server = await sharedServer()
// An attempt that isn't repeated may meet a stalled machine.
const client = new Client(server.url, { responseTimeoutMs: PATIENCE_MS })
after(() => client.close())

function seenBy(t, emitter) {
  const seen = []
  const note = (event) => seen.push(event)
  emitter.on('event', note)
  t.after(() => emitter.off('event', note))
  return seen
}

/** The next event of the kind; waiting for it keeps the process alive, which a client doesn't. */
function upcoming(emitter, kind) {
  const seen = []
  emitter.once(kind, (event) => seen.push(event))
  return () => until(() => seen[0])
}

const kinds = (seen) => seen.map(({ kind }) => kind)

test('the life of a lock is told in order, with its data', async (t) => {
  assert.ok(client instanceof EventEmitter)
  const seen = seenBy(t, client)
  const held = await client.lock(t.name, { ttlMs: 60_000 }).acquire()
  assert.equal(await client.lock(t.name).tryAcquire(), null)
  await held.extend({ ttlMs: 90_000 })
  await held.release()
  await until(() => kinds(seen).includes('released'))
  assert.deepEqual(kinds(seen), ['round', 'acquired', 'round', 'not_acquired', 'extended', 'released'])
  const [, acquired, , refused] = seen
  assert.deepEqual([acquired.lockName, acquired.owner, acquired.fence], [t.name, held.owner, held.fence])
  assert.ok(acquired.tookMs >= 0)
  assert.equal(refused.holder, held.owner)
  const fields = [
    'address', 'atMs', 'attempt', 'category', 'fence', 'holder', 'holderFence', 'key', 'kind', 'lastOwner', 'lockKind', 'lockName', 'message',
    'names', 'newReplicationId', 'nextFence', 'nextOwner', 'notifiedAgoMs', 'oldReplicationId', 'overrunMs', 'owner', 'rank', 'reason', 'remainingMs',
    'server', 'tookMs',
  ]
  for (const event of seen) assert.deepEqual(Object.keys(event).sort(), fields)
})

test('a listener for an event that there is not is refused, with the nearest one', () => {
  const never = () => assert.fail('called')
  for (const add of ['on', 'once', 'addListener', 'prependListener', 'prependOnceListener']) {
    assert.throws(() => client[add]('aquired', never), { code: 'INVALID_ARGUMENT', message: /^event: .*did you mean acquired\?/ })
    assert.throws(() => client[add]('nightly', never), { code: 'INVALID_ARGUMENT', message: /there are round, busy/ })
    for (const [old, now] of [['race', 'overlapped'], ['woken', 'acquired'], ['attempt', 'round'], ['failed', 'acquire_failed']]) {
      assert.throws(() => client[add](old, never), { message: new RegExp(`did you mean ${now}\\?`) })
    }
    assert.equal(client.listenerCount('nightly'), 0)
  }
  for (const known of ['error', 'newListener', 'removeListener', Symbol('own')]) client.on(known, never).off(known, never)
})

test('after removeAllListeners a new listener is called, and one for no event is refused', async (t) => {
  const own = new Client(`memory://${t.name}`)
  t.after(() => own.close())
  assert.equal(own.removeAllListeners(), own)
  assert.throws(() => own.on('aquired', () => {}), { code: 'INVALID_ARGUMENT' })
  const acquired = upcoming(own, 'acquired')
  await own.withLock('x', () => {})
  assert.equal((await acquired()).lockName, 'x')
})

test('each kind is an event of its own, before the common one', async (t) => {
  const order = []
  client.once('acquired', (event) => order.push(['acquired', event.lockName]))
  client.once('renewed', (event) => order.push(['renewed', event.lockName]))
  const renewed = upcoming(client, 'renewed')
  const held = await client.lock(t.name, { ttlMs: 2_500 }).acquire()
  await renewed()
  await held.release()
  assert.deepEqual(order, [['acquired', t.name], ['renewed', t.name]])
})

test('a loss is told also to who listens to nothing else', async (t) => {
  const lost = upcoming(client, 'lost')
  const held = await client.lock(t.name, { ttlMs: 2_500 }).acquire()
  await server.command('DEL', t.name)
  const event = await lost()
  assert.deepEqual([event.lockName, event.owner, event.reason], [t.name, held.owner, 'missing'])
})

test('an overlap that is proved is `overlapped`', async (t) => {
  const overlapped = upcoming(client, 'overlapped')
  const held = await client.lock(t.name, { ttlMs: 150, renew: false }).acquire()
  const next = await client.lock(t.name).acquire()
  assert.equal((await held.release()).outcome, 'taken')
  const event = await overlapped()
  assert.deepEqual([event.nextOwner, event.tookMs > 0], [next.owner, true])
  await next.release()
})

test('a foreign holder without expiry is warned of', async (t) => {
  const warning = upcoming(client, 'warning')
  await server.command('SET', t.name, 'redis-py')
  assert.equal(await client.lock(t.name).tryAcquire(), null)
  assert.match((await warning()).message, /expir/)
})

test('a server that fails and comes back is told', async (t) => {
  const own = await startServer(t)
  const cut = new Client(own.url, { responseTimeoutMs: 100 })
  const seen = seenBy(t, cut)
  const held = await cut.lock(t.name, { ttlMs: 400 }).acquire()
  await own.kill()
  await until(() => kinds(seen).includes('server_failed'))
  await own.restartEmpty()
  await until(() => kinds(seen).includes('server_recovered'))
  await until(() => !held.isValid())
  const failed = seen.find(({ kind }) => kind === 'server_failed')
  assert.ok(failed.server.includes(String(own.port)) && failed.message)
  await cut.close()
})

test('who listens to losses only is not told of normal life', async (t) => {
  const own = new Client(`memory://${t.name}`)
  const told = []
  own.emit = (name) => told.push(name)
  own.on('lost', () => {})
  for (let at = 0; at < 3; at++) await own.withLock(t.name, () => undefined)
  await own.lock(t.name).acquire()
  await own.close()
  assert.deepEqual(told.filter((name) => name !== 'newListener'), ['lost', 'event'])
})

test('all clients publish on the channel, also those made before it was subscribed to', async (t) => {
  const seen = []
  const note = (event, channel) => seen.push([channel, event.kind, event.lockName])
  diagnostics.subscribe('locktender', note)
  t.after(() => diagnostics.unsubscribe('locktender', note))
  const early = new Client(`memory://${t.name}`)
  for (const each of [client, early]) await each.withLock(t.name, () => undefined)
  await until(() => seen.filter(([, kind]) => kind === 'released').length === 2)
  assert.ok(seen.every(([channel, , lockName]) => channel === 'locktender' && lockName === t.name))
  await early.close()
})

test('a listener that throws is an uncaught exception, and no result is lost for it', async (t) => {
  const program = `
    process.on('uncaughtException', (error) => say(error.message))
    const client = new Client(url)
    client.on('acquired', () => { throw new Error('of the listener') })
    const held = await Promise.all([1, 2, 3].map((at) => client.lock(name + at).acquire()))
    say(held.every((each) => each.isValid()))
    await client.close()`
  const said = await run(t, program, server, t.name)
  assert.deepEqual(said.sort(), ['of the listener', 'of the listener', 'of the listener', 'true'])
})

test('a client that only its hold remembers still tells its events', async (t) => {
  const program = `
    let lost
    const acquire = async () => {
      const client = new Client(url)
      lost = new Promise((resolve) => client.on('lost', resolve))
      return await client.lock(name, { ttlMs: 3_500, maxHoldMs: 3_000 }).acquire()
    }
    const held = await acquire()
    for (let at = 0; at < 5; at++) { gc(); await sleep(10) }
    const waits = setInterval(() => {}, 1_000) // what is lost keeps no process alive
    say(held.isValid(), (await lost).reason)
    clearInterval(waits)
    await held[Symbol.asyncDispose]().catch((error) => say(error.code))`
  assert.deepEqual(await run(t, program, server, t.name, { flags: ['--expose-gc'] }), ['true max_hold', 'LOCK_LOST'])
})

test('each operation is traced on a channel of its own, from its start to its end', async (t) => {
  const seen = []
  const note = (step) => (context) => seen.push([step, context.operation, context.lockName, context.result ?? context.error?.code])
  const steps = { start: note('start'), asyncEnd: note('asyncEnd'), error: note('error') }
  const channels = ['acquire', 'extend', 'release'].map((operation) => diagnostics.tracingChannel(`locktender:${operation}`))
  for (const channel of channels) channel.subscribe(steps)
  const client = new Client(server.url)
  const held = await client.lock(t.name).acquire()
  await assert.rejects(client.lock(t.name, { waitMs: 0 }).acquire(), { code: 'ACQUIRE_TIMEOUT' })
  assert.equal(await client.lock(t.name).tryAcquire(), null)
  await held.extend()
  const released = await held.release()
  await client.withLock(t.name, () => undefined)
  for (const channel of channels) channel.unsubscribe(steps)
  await client.withLock(t.name, () => undefined)
  await client.close()
  const told = ([step, operation, lockName, outcome]) => [step, operation, lockName === t.name, outcome instanceof Hold ? 'a hold' : outcome]
  assert.deepEqual(seen.map(told), [
    ['start', 'acquire', true, undefined], ['asyncEnd', 'acquire', true, 'a hold'],
    ['start', 'acquire', true, undefined], ['error', 'acquire', true, 'ACQUIRE_TIMEOUT'], ['asyncEnd', 'acquire', true, 'ACQUIRE_TIMEOUT'],
    ['start', 'acquire', true, undefined], ['asyncEnd', 'acquire', true, undefined],
    ['start', 'extend', true, undefined], ['asyncEnd', 'extend', true, undefined],
    ['start', 'release', true, undefined], ['asyncEnd', 'release', true, released],
    ['start', 'acquire', true, undefined], ['asyncEnd', 'acquire', true, 'a hold'],
    ['start', 'release', true, undefined], ['asyncEnd', 'release', true, undefined],
  ])
})
