// The fixtures: they do what they say.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { once } from 'node:events'
import net from 'node:net'
import test from 'node:test'
import tls from 'node:tls'

import { binaries, certificate } from './support/checkout.mjs'
import { SLOTS, startCluster } from './support/cluster.mjs'
import { until } from './support/observe.mjs'
import { RealServer, sharedServer, startServer } from './support/server.mjs'
import { startProxy } from './support/proxy.mjs'

async function connect(port) {
  const socket = net.connect(port, '127.0.0.1')
  await once(socket, 'connect')
  return socket
}

/** One short reply; empty when the connection was closed instead. */
function ask(socket, request) {
  socket.write(request + '\r\n')
  return new Promise((resolve) => {
    socket.once('data', (data) => resolve(String(data)))
    socket.once('error', () => resolve(''))
    socket.once('close', () => resolve(''))
  })
}

for (const { name, kind, version } of binaries()) {
  test(`${name} starts`, async (t) => {
    const server = await startServer(t, { version: name })
    assert.match(await server.command('INFO', 'server'), new RegExp(`${kind}_version:${version}`))
    const socket = await connect(server.port)
    assert.equal(await ask(socket, 'PING'), '+PONG\r\n')
    socket.destroy()
  })
}

test('killed and restarted', async (t) => {
  const server = await startServer(t)
  await server.command('SET', 'a', '1')
  await server.kill()
  await assert.rejects(connect(server.port), { code: 'ECONNREFUSED' })
  await server.restartEmpty()
  assert.equal(await server.command('GET', 'a'), null)
})

test('persistent', async (t) => {
  const server = await startServer(t, { persistent: true })
  await server.command('SET', 'a', '1')
  await server.restart()
  assert.equal(await server.command('GET', 'a'), '1')
})

test('paused and resumed', async (t) => {
  const server = await startServer(t)
  const socket = await connect(server.port)
  server.pause()
  const answer = ask(socket, 'PING')
  assert.match(readFileSync(`/proc/${server.pid}/stat`, 'utf8'), /\) T /)
  server.resume()
  assert.equal(await answer, '+PONG\r\n')
  socket.destroy()
})

test('password and users', async (t) => {
  const server = await startServer(t, { password: 'secret', users: { reader: ['other', '~* +get'] } })
  assert.match(server.url, /:secret@/)
  assert.equal(await server.command('SET', 'a', '1'), 'OK')
  const socket = await connect(server.port)
  assert.match(await ask(socket, 'GET a'), /^-NOAUTH/)
  assert.equal(await ask(socket, 'AUTH reader other'), '+OK\r\n')
  assert.match(await ask(socket, 'SET a 2'), /^-NOPERM/)
  socket.destroy()
})

test('TLS', async (t) => {
  const server = await startServer(t, { tls: 'server' })
  const ca = readFileSync(certificate('ca.pem'))
  const socket = tls.connect({ port: server.port, host: 'localhost', ca })
  await once(socket, 'secureConnect')
  assert.equal(await ask(socket, 'PING'), '+PONG\r\n')
  socket.destroy()
})

test('TLS with the certificate of another host', async (t) => {
  const server = await startServer(t, { tls: 'elsewhere' })
  const socket = tls.connect({ port: server.port, host: 'localhost', ca: readFileSync(certificate('ca.pem')) })
  const [error] = await once(socket, 'error')
  assert.equal(error.code, 'ERR_TLS_CERT_ALTNAME_INVALID')
})

test('a closed server is gone', async () => {
  const server = await RealServer.start()
  await server.close()
  await assert.rejects(connect(server.port), { code: 'ECONNREFUSED' })
})

test('proxy: counts and latency', async (t) => {
  const proxy = await startProxy(t, await sharedServer())
  const socket = await connect(proxy.port)
  assert.equal(await ask(socket, 'PING'), '+PONG\r\n')
  assert.deepEqual([await proxy.connections(), await proxy.openConnections()], [1, 1])
  assert.deepEqual([await proxy.clientReads(), await proxy.clientBytes()], [1, 6])
  await proxy.latency(60, 40)
  const began = performance.now()
  assert.equal(await ask(socket, 'PING'), '+PONG\r\n')
  assert.ok(performance.now() - began >= 100)
  socket.destroy()
})

test('proxy: cut, refuse, accept', async (t) => {
  const proxy = await startProxy(t, await sharedServer())
  const socket = await connect(proxy.port)
  assert.equal(await ask(socket, 'PING'), '+PONG\r\n')
  const closed = once(socket, 'close')
  await proxy.cut()
  await closed
  await proxy.refuse()
  await assert.rejects(connect(proxy.port), { code: 'ECONNREFUSED' })
  await proxy.accept()
  const again = await connect(proxy.port)
  assert.equal(await ask(again, 'PING'), '+PONG\r\n')
  again.destroy()
})

test('proxy: black hole', async (t) => {
  const server = await sharedServer()
  const proxy = await startProxy(t, server)
  const socket = await connect(proxy.port)
  await proxy.blackHole()
  const answer = ask(socket, 'SET hole 1')
  await until(() => proxy.clientReads())
  assert.equal(await server.command('GET', 'hole'), null)
  await proxy.restore()
  assert.equal(await answer, '+OK\r\n')
  socket.destroy()
})

test('proxy: answers are held, requests are not', async (t) => {
  const server = await sharedServer()
  const proxy = await startProxy(t, server)
  const socket = await connect(proxy.port)
  await proxy.holdAnswers()
  let answered = false
  const answer = ask(socket, 'SET hold 1').finally(() => (answered = true))
  await until(() => server.command('GET', 'hold'))
  assert.equal(answered, false)
  await proxy.letAnswersGo()
  assert.equal(await answer, '+OK\r\n')
  socket.destroy()
})

test('proxy: cut before and after apply', async (t) => {
  const server = await sharedServer()
  const proxy = await startProxy(t, server)
  await proxy.cutBeforeApply(1, 'set')
  assert.equal(await ask(await connect(proxy.port), 'SET cut 1'), '')
  assert.equal(await server.command('GET', 'cut'), null)
  await proxy.cutAfterApply(1, 'set')
  assert.equal(await ask(await connect(proxy.port), 'SET cut 1'), '')
  assert.equal(await server.command('GET', 'cut'), '1')
  assert.equal(await proxy.faultsLeft(), 0)
})

test('the shared server does not outlive this file, nor keep it alive', async () => {
  assert.equal(await (await sharedServer()).command('PING'), 'PONG')
})

test('a cluster shares the slots', async (t) => {
  const cluster = await startCluster(t, { password: 'secret' })
  assert.match(cluster.url, /^redis\+cluster:\/\/:secret@127\.0\.0\.1:\d+,/)
  for (const [index, slot] of [0, SLOTS / 2, SLOTS - 1].entries()) assert.equal(await cluster.primary(slot), cluster.nodes[index])
  assert.equal(await cluster.command('a', 'SET', 'a', '1'), 'OK')
  const home = await cluster.at('a')
  await assert.rejects(cluster.nodes.find((node) => node !== home).command('GET', 'a'), /^ReplyError: MOVED/)
})

test('a slot of a cluster moves', async (t) => {
  const cluster = await startCluster(t)
  await cluster.fill('full', 1_000)
  const slot = await cluster.slot('full')
  const source = await cluster.primary(slot)
  const target = cluster.nodes.find((node) => node !== source)
  await cluster.beginMove(slot, target)
  assert.equal(await cluster.moveKeys(slot, target, 400), 400)
  await assert.rejects(source.command('GET', 'full'), /^ReplyError: ASK/)
  while (await cluster.moveKeys(slot, target, 400));
  await cluster.finishMove(slot, target)
  assert.equal(await target.command('CLUSTER', 'COUNTKEYSINSLOT', slot), 1_000)
  if (cluster.movesAtOnce) {
    await cluster.moveAtOnce(slot, source)
    assert.equal(await source.command('CLUSTER', 'COUNTKEYSINSLOT', slot), 1_000)
  }
})

test('a cluster fails over', async (t) => {
  const cluster = await startCluster(t, { replicas: 1 })
  const primary = await cluster.at('a')
  const promoted = await cluster.failOver(primary)
  assert.equal(await cluster.at('a'), promoted)
  assert.equal(await cluster.command('a', 'SET', 'a', '1'), 'OK')
})
