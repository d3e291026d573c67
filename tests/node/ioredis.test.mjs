// A client made of an ioredis client: it uses the same server.

import assert from 'node:assert/strict'
import test from 'node:test'

import { Redis, Cluster } from 'ioredis'
import { Client, InvalidArgumentError } from 'locktender'

import { certificate } from './support/checkout.mjs'
import { startServer } from './support/server.mjs'

/** An ioredis client that connects only if it is asked to. */
function ioredis(t, ...given) {
  const redis = new Redis(...given, { lazyConnect: true })
  t.after(() => redis.disconnect())
  return redis
}

async function leadsTo(t, redis, server, key, options) {
  const client = Client.fromIoredis(redis, options)
  t.after(() => client.close())
  const held = await client.lock(t.name).acquire()
  assert.equal(await server.command('GET', key ?? t.name), held.owner)
  await held.release()
}

test('address, credentials and prefix are copied', async (t) => {
  const server = await startServer(t, { password: 'p@ss:w/rd#1%', users: { 'o/p': ['se:c%ret', '+@all ~*'] } })
  const { port } = server
  await leadsTo(t, ioredis(t, { host: '127.0.0.1', port, password: 'p@ss:w/rd#1%' }), server)
  await leadsTo(t, ioredis(t, { host: '127.0.0.1', port, username: 'o/p', password: 'se:c%ret', keyPrefix: 'of:' }), server, `of:${t.name}`)
  await leadsTo(t, ioredis(t, { host: '127.0.0.1', port, password: 'p@ss:w/rd#1%', keyPrefix: 'of:' }), server, `mine:${t.name}`, { prefix: 'mine:' })
  await leadsTo(t, ioredis(t, { path: server.socket, password: 'p@ss:w/rd#1%' }), server)
})

test('the database is copied', async (t) => {
  const server = await startServer(t)
  const client = Client.fromIoredis(ioredis(t, `${server.url}/3`))
  const held = await client.lock(t.name).acquire()
  assert.equal(await server.command('EXISTS', t.name), 0)
  const redis = ioredis(t, `${server.url}/3`)
  assert.equal(await redis.get(t.name), held.owner)
  await client.close()
})

test('TLS is copied, and wants its certificates as files', async (t) => {
  const server = await startServer(t, { tls: 'server' })
  const redis = ioredis(t, { ...options(server), tls: { ca: 'the text of a certificate' } })
  const client = Client.fromIoredis(redis, { tlsCa: certificate('ca.pem') })
  assert.equal(await client.withLock(t.name, (held) => held.isValid()), true)
  await client.close()
  assert.throws(() => Client.fromIoredis(redis), { code: 'INVALID_ARGUMENT', message: /name the files in tlsCa/ })
})

function options(server) {
  const { hostname, port } = new URL(server.url)
  return { host: hostname, port: Number(port) }
}

test('what cannot be copied is refused, without a word of the password', (t) => {
  const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true, redisOptions: { password: 'secret' } })
  t.after(() => cluster.disconnect())
  const refused = [
    [cluster, /Cluster/],
    [ioredis(t, { sentinels: [{ host: '127.0.0.1', port: 1 }], name: 'm', password: 'secret' }), /sentinels/],
    [ioredis(t, { password: 'secret', tls: { rejectUnauthorized: false } }), /always checked/],
    [ioredis(t, { password: 'secret', host: 'a', tls: { servername: 'b' } }), /the certificate has to be the host's/],
    [ioredis(t, { password: 'secret', tls: { cert: 'text', key: 'text' } }), /tlsCert, tlsKey/],
    ['redis://:secret@localhost', /must be an ioredis client/],
    [{}, /must be an ioredis client/],
    [null, /must be an ioredis client/],
  ]
  for (const [given, why] of refused) {
    assert.throws(() => Client.fromIoredis(given), (error) => {
      assert.ok(error instanceof InvalidArgumentError)
      assert.match(error.message, why)
      assert.doesNotMatch(error.message, /secret/)
      return true
    })
  }
  assert.throws(() => Client.fromIoredis(ioredis(t, 1), { ttl: 5 }), { message: /^ttl: there is no option/ })
})
