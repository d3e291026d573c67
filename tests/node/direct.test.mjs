// The connection that Node's own event loop drives: the same behaviour as by the I/O thread, also when the loop is blocked.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Client, ClosedError, LockLostError } from 'locktender'

import { certificate } from './support/checkout.mjs'
import { timed, until } from './support/observe.mjs'
import { startProxy } from './support/proxy.mjs'
import { startServer } from './support/server.mjs'

/** Our connections, as the server lists them. */
async function connections(server) {
  return (await server.command('CLIENT', 'LIST')).split('\n').filter((line) => line.includes('name=locktender'))
}

/** Has a client connect. */
async function warm(client) {
  await (await client.lock('warm').acquire()).release()
}

/** A server of the test's own, and a client that is warm; through a proxy if one is asked for. */
async function place(t, { proxied = false, ...options } = {}) {
  const server = await startServer(t)
  const proxy = proxied ? await startProxy(t, server) : undefined
  const client = new Client((proxy ?? server).url, options)
  t.after(() => client.close())
  await warm(client)
  return { server, proxy, client }
}

function block(ms) {
  const end = performance.now() + ms
  while (performance.now() < end);
}

const gone = (server, name) => until(async () => (await server.command('EXISTS', name)) === 0)

test('uncontended locks cost one connection', async (t) => {
  const { client, server } = await place(t)
  await Promise.all(Array.from({ length: 10 }, (_, number) => client.withLock(`${t.name} ${number}`, () => undefined)))
  assert.equal((await connections(server)).length, 1)
})

for (const kind of ['unix socket', 'TLS']) {
  test(`${kind}: the same`, async (t) => {
    const server = await startServer(t, kind === 'TLS' ? { tls: 'server' } : {})
    const client = kind === 'TLS' ? new Client(server.url, { tlsCa: certificate('ca.pem') }) : new Client(server.unixUrl)
    const held = await Promise.all(Array.from({ length: 300 }, (_, number) => client.lock(`${t.name} ${number}`).acquire()))
    assert.ok((await Promise.all(held.map((each) => each.release()))).every(({ outcome }) => outcome === 'released'))
    await client.close()
  })
}

test('what is called in one turn leaves in few pieces', async (t) => {
  const { client, server, proxy } = await place(t, { proxied: true })
  const before = await proxy.clientReads()
  // A server that has answered everything gets the next call at once.
  server.pause()
  const acquiring = Array.from({ length: 200 }, (_, number) => client.lock(`${t.name} ${number}`).acquire())
  server.resume()
  const held = await Promise.all(acquiring)
  const pieces = (await proxy.clientReads()) - before
  // 13 writes, each of which is a half or a quarter of what is under way, and of a slow loop one more for every 20 ms.
  assert.ok(pieces <= 40, `${pieces} pieces`)
  await Promise.all(held.map((each) => each.release()))
})

test('more than the socket takes at once is sent in the end', async (t) => {
  const { client, server } = await place(t)
  const prefix = 'x'.repeat(900)
  const held = await Promise.all(Array.from({ length: 5_000 }, (_, number) => client.lock(prefix + number).acquire()))
  assert.equal(new Set(held.map((each) => each.owner)).size, 5_000)
  const released = await Promise.all(held.map((each) => each.release()))
  assert.ok(released.every(({ outcome }) => outcome === 'released'))
  await gone(server, `${prefix}4999`)
})

test('f01: what was called before the loop is blocked is sent and answered meanwhile', async (t) => {
  const { client, server } = await place(t)
  const acquiring = client.lock(t.name, { ttlMs: 60_000, renew: false }).acquire()
  block(2_000)
  const held = await acquiring
  assert.ok((await server.command('PTTL', t.name)) < 59_000, 'it was acquired while the loop was blocked')
  await held.release()
})

test('f13: an acquire whose answer is cut off is tried again, and leaves nothing', async (t) => {
  const { client, server, proxy } = await place(t, { proxied: true })
  await proxy.cutAfterApply(1, t.name.split(' ').at(-1))
  const held = await client.lock(t.name).acquire()
  assert.equal(await proxy.faultsLeft(), 0)
  assert.equal(await server.holder(t.name), held.owner)
  assert.equal((await held.release()).outcome, 'released')
  await gone(server, t.name)
})

for (const way of ['cutBeforeApply', 'cutAfterApply']) {
  test(`a release that meets ${way} is released all the same`, async (t) => {
    const { client, server, proxy } = await place(t, { proxied: true })
    const held = await client.lock(t.name).acquire()
    await proxy[way](1, t.name.split(' ').at(-1))
    assert.equal((await held.release()).outcome, 'released')
    assert.equal(await proxy.faultsLeft(), 0)
    await gone(server, t.name)
  })
}

test('a silent connection is given up in time', async (t) => {
  const { client, server, proxy } = await place(t, { proxied: true, responseTimeoutMs: 300 })
  await proxy.silenceAfterApply(1, t.name.split(' ').at(-1))
  const { tookMs, value: held } = await timed(() => client.lock(t.name).acquire())
  assert.ok(tookMs >= 250, `${tookMs} ms`)
  await held.release()
  await gone(server, t.name)
})

test('a connection that breaks is replaced', async (t) => {
  const { client, server } = await place(t)
  const ids = async () => (await connections(server)).map((line) => /id=(\d+)/.exec(line)[1])
  const before = await ids()
  for (const id of before) await server.command('CLIENT', 'KILL', 'ID', id)
  await warm(client)
  assert.ok((await ids()).every((id) => !before.includes(id)))
})

test('f29: a flushed script cache is taught again', async (t) => {
  const { client, server } = await place(t)
  for (let round = 0; round < 3; round += 1) {
    await server.command('SCRIPT', 'FLUSH')
    const held = await client.lock(t.name).acquire()
    await server.command('SCRIPT', 'FLUSH')
    assert.equal((await held.release()).outcome, 'released')
  }
})

test('a distant server is waited for', async (t) => {
  const { client, proxy } = await place(t, { proxied: true })
  await proxy.latency(60, 60)
  const { tookMs, value: held } = await timed(() => client.lock(t.name).acquire())
  assert.ok(tookMs >= 100)
  assert.equal((await held.release()).outcome, 'released')
})

test('a server that is paused and goes on loses nothing', async (t) => {
  const { client, server } = await place(t)
  const held = await client.lock(t.name, { ttlMs: 60_000 }).acquire()
  server.pause()
  const releasing = held.release()
  const acquiring = client.lock(`${t.name} 2`).acquire()
  block(100)
  server.resume()
  assert.equal((await releasing).outcome, 'released')
  await (await acquiring).release()
})

test('f28: a close amid calls ends each of them, and gives everything back', async (t) => {
  const { client, server } = await place(t)
  const names = Array.from({ length: 50 }, (_, number) => `${t.name} ${number}`)
  const held = await Promise.all(names.map((name) => client.lock(name).acquire()))
  const signals = held.map((each) => each.signal)
  const calls = [...names.map((name) => client.lock(`${name} again`).acquire()), ...held.slice(25).map((each) => each.release())]
  const settled = Promise.allSettled(calls)
  await client.close()
  for (const { status, reason } of await settled) {
    assert.ok(status === 'fulfilled' || reason instanceof ClosedError || reason instanceof LockLostError, reason)
  }
  assert.ok(signals.slice(0, 25).every(({ aborted, reason }) => aborted && reason.reason === 'closed'))
  await until(async () => (await server.command('KEYS', `${t.name}*`)).every((key) => key.includes(':~lt:')))
})

test('aborts amid calls leave no key', async (t) => {
  const { client, server } = await place(t)
  const lock = client.lock(t.name)
  for (let round = 0; round < 100; round += 1) {
    const controller = new AbortController()
    const acquiring = lock.acquire({ signal: controller.signal }).catch((error) => error)
    if (round % 3 === 1) await null
    if (round % 3 === 2) await new Promise(setImmediate)
    controller.abort(new Error('no'))
    const came = await acquiring
    if (!(came instanceof Error)) await came.release()
  }
  await gone(server, t.name)
  await (await lock.acquire()).release()
})
