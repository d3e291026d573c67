// AbortSignals that end an acquire in every state; nothing remains on the server.

import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { AcquireTimeoutError, Client, InvalidArgumentError } from 'locktender'
import { ScriptedServer } from 'locktender/testing'

import { PATIENCE_MS, PROMPTLY_MS, timed, until } from './support/observe.mjs'
import { startProxy } from './support/proxy.mjs'
import { sharedServer } from './support/server.mjs'

const server = await sharedServer()
// An attempt that isn't repeated may meet a stalled machine.
const patient = { responseTimeoutMs: PATIENCE_MS }
const client = new Client(server.url, patient)
const rival = new Client(server.url, patient)
after(() => Promise.all([client.close(), rival.close()]))

// Everything that takes a signal: it is called with the client, a name and the signal, and gives what it held or did.
const entrances = {
  acquire: (from, name, signal) => from.lock(name).acquire({ signal }),
  tryAcquire: (from, name, signal) => from.lock(name).tryAcquire({ signal }),
  withLock: (from, name, signal) => from.withLock(name, { signal }, () => 'ran'),
  tryWithLock: (from, name, signal) => from.tryWithLock(name, { signal }, () => 'ran'),
  begin: (from, name, signal) => from.job(name).begin({ signal }),
  run: (from, name, signal) => from.job(name).run(() => 'ran', { signal }),
  adopt: (from, name, signal) => from.adopt(from.ticket, { signal }),
}

const listeners = (signal) => getEventListeners(signal, 'abort').length

for (const [entrance, enter] of Object.entries(entrances)) {
  test(`aborted before: ${entrance} does no I/O`, async (t) => {
    const scripted = new ScriptedServer()
    const idle = new Client(scripted)
    const held = await idle.lock(`${t.name} ticket`).acquire()
    idle.ticket = held.handOver()
    const before = scripted.seen.length
    const reason = new Error('changed my mind')
    await assert.rejects(enter(idle, t.name, AbortSignal.abort(reason)), (error) => error === reason)
    assert.equal(scripted.seen.length, before)
    await idle.close()
  })

  test(`aborted during: ${entrance} rejects with the reason at once, and leaves no key`, async (t) => {
    const proxy = await startProxy(t, server)
    const slow = new Client(proxy.url, patient)
    await slow.withLock(`${t.name} scripts`, () => undefined)
    await slow.job(`${t.name} scripts`).run(() => undefined) // the server knows them: its answer that it doesn't would be held back
    const held = await slow.lock(`${t.name} ticket`).acquire()
    slow.ticket = held.handOver()
    await proxy.holdAnswers()
    const before = await proxy.clientBytes()
    const abort = new AbortController()
    const reason = { any: 'value' }
    const work = enter(slow, t.name, abort.signal)
    assert.equal(listeners(abort.signal), 1)
    await until(async () => (await proxy.clientBytes()) > before && (entrance === 'adopt' || await server.command('EXISTS', t.name)))
    abort.abort(reason)
    const { tookMs } = await timed(() => assert.rejects(work, (error) => error === reason)) // and no answer has come
    assert.ok(tookMs < 100, `took ${tookMs} ms`)
    assert.equal(listeners(abort.signal), 0)
    await until(async () => !(await server.command('EXISTS', t.name)), PROMPTLY_MS)
    await proxy.letAnswersGo()
    assert.equal((await slow.lock(t.name).acquire()).isValid(), true)
    await slow.close()
  })

  test(`aborted after: ${entrance} is not touched`, async (t) => {
    client.ticket = (await client.lock(`${t.name} ticket`).acquire()).handOver()
    const abort = new AbortController()
    const held = await enter(client, t.name, abort.signal)
    assert.equal(listeners(abort.signal), 0)
    abort.abort()
    if (held.isValid) {
      await sleep(20)
      held.check()
      assert.equal((await held.release()).outcome, 'released')
    }
  })
}

test('an abort ends the wait for a busy lock, which is otherwise unchanged', async (t) => {
  const held = await rival.lock(t.name).acquire()
  const abort = new AbortController()
  const waits = Array.from({ length: 20 }, () => client.lock(t.name).acquire({ signal: abort.signal }))
  assert.equal(listeners(abort.signal), 1, 'more than ten are a warning of Node')
  const ends = Promise.allSettled(waits)
  const other = client.lock(t.name).acquire()
  await until(async () => (await server.line(t.name)).length) // into the wait
  const { tookMs } = await timed(() => {
    abort.abort()
    return ends
  })
  assert.ok(tookMs < 100, `took ${tookMs} ms`)
  assert.ok((await ends).every(({ reason }) => reason === abort.signal.reason && reason.name === 'AbortError'))
  assert.equal(await server.holder(t.name), held.owner)
  await held.release()
  assert.equal((await (await other).release()).outcome, 'released')
})

test('an abort by a listener of the grant comes too late, and leaves no key behind', async (t) => {
  const own = new Client(`memory://${t.name}`)
  t.after(() => own.close())
  const abort = new AbortController()
  own.on('acquired', () => abort.abort())
  const held = await own.lock(t.name).acquire({ signal: abort.signal }).catch(() => undefined)
  await until(() => abort.signal.aborted)
  await held?.release()
  await until(async () => !(await own.lock(t.name).inspect()))
})

test('AbortSignal.timeout is a reason like any other', async (t) => {
  const held = await rival.lock(t.name).acquire()
  await assert.rejects(client.lock(t.name).acquire({ signal: AbortSignal.timeout(50) }), { name: 'TimeoutError' })
  await held.release()
})

test('an acquire that fails lets go of its signal', async (t) => {
  const held = await rival.lock(t.name).acquire()
  const { signal } = new AbortController()
  for (let at = 0; at < 20; at++) {
    await assert.rejects(client.lock(t.name, { waitMs: 0 }).acquire({ signal }), AcquireTimeoutError)
    assert.equal(await client.lock(t.name).tryAcquire({ signal }), null)
  }
  assert.equal(listeners(signal), 0)
  await held.release()
})

test('an abort inside the body is the body\'s own affair', async (t) => {
  const abort = new AbortController()
  await client.withLock(t.name, { signal: abort.signal }, async (held) => {
    abort.abort()
    await sleep(20)
    held.check()
  })
  const reason = new Error('of the body')
  const rethrown = client.withLock(t.name, { signal: new AbortController().signal }, () => { throw reason })
  await assert.rejects(rethrown, (error) => error === reason)
  assert.equal(await server.command('EXISTS', t.name), 0)
})

test('a signal of another realm is a signal; what is none is refused', async (t) => {
  const foreign = Object.assign(new EventTarget(), { aborted: false, reason: undefined })
  const held = await rival.lock(t.name).acquire()
  const waiting = client.lock(t.name).acquire({ signal: foreign })
  Object.assign(foreign, { aborted: true, reason: new Error('from afar') })
  foreign.dispatchEvent(new Event('abort'))
  await assert.rejects(waiting, /from afar/)
  await held.release()
  for (const signal of [null, 7, 'abort', {}, new AbortController()]) {
    await assert.rejects(client.lock(t.name).acquire({ signal }), InvalidArgumentError)
    await assert.rejects(client.lock(t.name).tryAcquire({ signal }), InvalidArgumentError)
    await assert.rejects(client.withLock(t.name, { signal }, () => assert.fail('ran')), InvalidArgumentError)
  }
})

test('f13: aborts at any moment of an acquire leave no key', async (t) => {
  const proxy = await startProxy(t, server)
  const far = new Client(proxy.url)
  await far.checkServers() // connected
  await proxy.latency(2, 2)
  let [granted, aborted] = [0, 0]
  const attempt = async (at, span) => {
    const abort = new AbortController()
    const timer = setTimeout(() => abort.abort(), (at % 12) * span)
    await far.withLock(`${t.name} ${at % 40}`, { ttlMs: 600_000, signal: abort.signal }, () => void granted++).catch((error) => {
      assert.equal(error, abort.signal.reason)
      aborted++
    })
    clearTimeout(timer)
  }
  // From moments that no machine can beat to some that the slowest does.
  for (const span of [1, 1, 2, 4, 8, 16, 32]) await Promise.all(Array.from({ length: 60 }, (_, at) => attempt(at, span)))
  assert.ok(granted > 10 && aborted > 10, `${granted} granted, ${aborted} aborted`)
  await until(async () => !(await server.command('KEYS', `${t.name} *`)).length, PROMPTLY_MS)
  await far.close()
})

test('f13: a grant whose answer was cut off, and the caller gone, is undone', async (t) => {
  const proxy = await startProxy(t, server)
  const cut = new Client(proxy.url)
  await cut.withLock(t.name, () => undefined) // its scripts are known
  await proxy.cutAfterApply(1, t.name.split(' ').at(-1))
  await proxy.refuse() // or its next attempt may be granted before anybody sees the first cut off
  const abort = new AbortController()
  const waiting = assert.rejects(cut.lock(t.name, { ttlMs: 600_000 }).acquire({ signal: abort.signal }), { name: 'AbortError' })
  await until(() => server.command('EXISTS', t.name))
  abort.abort()
  await waiting
  await proxy.accept()
  await until(async () => !(await server.command('EXISTS', t.name)), PROMPTLY_MS)
  await cut.close()
})

test('f14: what was granted while JavaScript ran, and is aborted before it is told, keeps no lock for minHoldMs', async (t) => {
  const local = new Client(`memory://${t.name.replaceAll(/[^a-z]/g, '-')}`)
  const kept = { ttlMs: 600_000, minHoldMs: 600_000 }
  const entrances = {
    acquire: (name, signal) => local.lock(name, kept).acquire({ signal }),
    tryAcquire: (name, signal) => local.lock(name, kept).tryAcquire({ signal }),
    withLock: (name, signal) => local.withLock(name, { ...kept, signal }, () => assert.fail('ran')),
    campaign: (name, signal) => local.election(name, kept).campaign({ signal }),
  }
  for (const [name, enter] of Object.entries(entrances)) {
    const abort = new AbortController()
    const rejected = assert.rejects(enter(name, abort.signal), { name: 'AbortError' })
    const granted = Date.now() + 50 // the grant comes on another thread
    while (Date.now() < granted);
    abort.abort()
    await rejected
    await until(async () => (await local.lock(name).inspect()) === null, PROMPTLY_MS)
  }
  await local.close()
})
