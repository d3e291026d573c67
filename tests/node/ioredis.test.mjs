// A client made of an ioredis client: it uses the same server.

import assert from 'node:assert/strict'
import test from 'node:test'

import { Redis, Cluster } from 'ioredis'
import { Client, InvalidArgumentError } from 'locktender'

import { certificate } from './support/checkout.mjs'
import { startCluster } from './support/cluster.mjs'
import { until } from './support/observe.mjs'
import { ownerOf, startServer } from './support/server.mjs'

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
  assert.equal(await server.holder(key ?? t.name), held.owner)
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
  assert.equal(ownerOf(await redis.get(t.name)), held.owner)
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

test('a service of Sentinel is copied, with its credentials and its database', async (t) => {
  const node = await startServer(t, { password: 'p@ss:w/rd#1%' })
  const config = [`sentinel monitor main 127.0.0.1 ${node.port} 1`, 'sentinel auth-pass main p@ss:w/rd#1%']
  const sentinel = await startServer(t, { sentinel: true, password: 'o+ther&', config })
  const sentinels = [{ host: '127.0.0.1', port: sentinel.port }, { host: '127.0.0.1', port: 1 }]
  const given = { sentinels, name: 'main', password: 'p@ss:w/rd#1%', sentinelPassword: 'o+ther&' }
  await leadsTo(t, ioredis(t, given), node)
  await leadsTo(t, ioredis(t, { ...given, sentinelUsername: 'default', keyPrefix: 'of:' }), node, `of:${t.name}`)
  // As ioredis does: TLS is for the primary only where another option says so.
  await leadsTo(t, ioredis(t, { ...given, tls: {} }), node)
  const client = Client.fromIoredis(ioredis(t, { ...given, db: 3 }))
  const held = await client.lock(t.name).acquire()
  assert.equal(await node.command('EXISTS', t.name), 0)
  assert.equal(held.isValid(), true)
  await client.close()
  const wrong = Client.fromIoredis(ioredis(t, { ...given, sentinels: sentinels.slice(0, 1), sentinelPassword: 'wrong' }))
  await assert.rejects(wrong.lock(t.name).acquire(), { code: 'DENIED', message: /refuses sentinel_user or sentinel_password/ })
  await wrong.close()
})

test('the addresses of a natMap are copied', async (t) => {
  const node = await startServer(t)
  const sentinel = await startServer(t, { sentinel: true, config: [`sentinel monitor main 127.0.0.2 ${node.port} 1`] })
  const natMap = { [`127.0.0.2:${node.port}`]: { host: '127.0.0.1', port: node.port } }
  await leadsTo(t, ioredis(t, { sentinels: [{ host: '127.0.0.1', port: sentinel.port }], name: 'main', natMap }), node)
})

test('the name of a certificate is copied', async (t) => {
  const server = await startServer(t, { tls: 'elsewhere' })
  const { port } = new URL(server.url)
  const redis = ioredis(t, { host: '127.0.0.1', port: Number(port), tls: { ca: 'text', servername: 'elsewhere.invalid' } })
  const client = Client.fromIoredis(redis, { tlsCa: certificate('ca.pem') })
  t.after(() => client.close())
  assert.equal(await client.withLock(t.name, (held) => held.isValid()), true)
  const other = Client.fromIoredis(redis, { tlsCa: certificate('ca.pem'), tlsName: 'localhost' })
  t.after(() => other.close())
  await assert.rejects(other.lock(t.name, { waitMs: 0 }).acquire(), { code: 'UNAVAILABLE', message: /not valid for name/ })
})

test('TLS of a service of Sentinel is copied, for the primary and for the sentinels', async (t) => {
  const node = await startServer(t, { tls: 'server' })
  const config = [`sentinel monitor main 127.0.0.1 ${node.port} 1`]
  const [plain, secure] = [await startServer(t, { sentinel: true, config }), await startServer(t, { sentinel: true, config, tls: 'server' })]
  const tls = { ca: 'the text of a certificate' }
  const at = ({ port }, more) => ioredis(t, { sentinels: [{ host: '127.0.0.1', port }], name: 'main', enableTLSForSentinelMode: true, tls, ...more })
  for (const redis of [at(plain), at(secure, { sentinelTLS: tls })]) {
    const client = Client.fromIoredis(redis, { tlsCa: certificate('ca.pem') })
    assert.equal(await client.withLock(t.name, (held) => held.isValid()), true)
    await client.close()
  }
})

/** An ioredis client of a cluster that connects only if it is asked to. */
function ofCluster(t, nodes, given = {}) {
  const redis = new Cluster(nodes, { ...given, lazyConnect: true })
  t.after(() => redis.disconnect())
  return redis
}

test('the nodes of a cluster are copied, with credentials and prefix', async (t) => {
  const password = 'p@ss:w/rd#1%'
  const cluster = await startCluster(t, { password })
  const [first, second] = cluster.hosts
  const redisOptions = { password, keyPrefix: 'of:' }
  const login = `:${encodeURIComponent(password)}@`
  const given = [
    [cluster.hosts, { redisOptions }],
    [[second], { redisOptions: { password }, keyPrefix: 'of:' }],
    [[`redis://127.0.0.1:${first.port}`, first.port, `127.0.0.1:${second.port}`], { redisOptions }],
    [[`redis://${login}127.0.0.1:${first.port}`], { keyPrefix: 'of:' }],
  ]
  for (const [nodes, options] of given) {
    const client = Client.fromIoredis(ofCluster(t, nodes, options))
    for (const name of ['a', 'b', 'c', 'd']) {
      const held = await client.lock(name).acquire()
      assert.equal(ownerOf(await cluster.command(`of:${name}`, 'GET', `of:${name}`)), held.owner)
      await held.release()
    }
    await client.close()
  }
})

test('TLS of a cluster is copied', async (t) => {
  const cluster = await startCluster(t, { tls: 'server' })
  const tls = { ca: 'the text of a certificate' }
  const redis = ofCluster(t, cluster.hosts, { redisOptions: { tls }, dnsLookup: (address, callback) => callback(null, address) })
  const client = Client.fromIoredis(redis, { tlsCa: certificate('ca.pem') })
  assert.equal(await client.withLock(t.name, (held) => held.isValid()), true)
  await client.close()
  assert.throws(() => Client.fromIoredis(redis), { message: /name the files in tlsCa/ })
})

test('the natMap of a cluster is copied, and gives way to addressMap', async (t) => {
  const cluster = await startCluster(t)
  // It announces ports that lead nowhere.
  const natMap = {}
  for (const [index, node] of cluster.nodes.entries()) {
    await node.command('CONFIG', 'SET', 'cluster-announce-port', index + 1)
    natMap[`127.0.0.1:${index + 1}`] = { host: '127.0.0.1', port: node.port }
  }
  await until(async () => JSON.stringify(await cluster.nodes[0].command('CLUSTER', 'SLOTS')).includes('"127.0.0.1",3'))
  const addressMap = Object.fromEntries(Object.entries(natMap).map(([announced, { port }]) => [announced, `127.0.0.1:${port}`]))
  const nodes = cluster.hosts
  const clients = [
    Client.fromIoredis(ofCluster(t, nodes, { natMap })),
    Client.fromIoredis(ofCluster(t, nodes, { natMap: () => null }), { addressMap }),
  ]
  for (const client of clients) {
    for (const name of ['a', 'b', 'c', 'd']) assert.equal(await client.withLock(name, (held) => held.isValid()), true)
    await client.close()
  }
})

function options(server) {
  const { hostname, port } = new URL(server.url)
  return { host: hostname, port: Number(port) }
}

test('what cannot be copied is refused, without a word of the password', (t) => {
  const cluster = (options, nodes = [{ host: '127.0.0.1', port: 1 }]) => ofCluster(t, nodes, { redisOptions: { password: 'secret' }, ...options })
  const sentinels = { sentinels: [{ host: '127.0.0.1', port: 1 }], name: 'm', password: 'secret', sentinelPassword: 'secret' }
  const refused = [
    [cluster({ natMap: () => null }), /natMap/],
    [cluster({ useSRVRecords: true }), /useSRVRecords/],
    [cluster({}, []), /without nodes/],
    [{ isCluster: true, options: {}, startupNodes: ['redis://:secret@a b'] }, /each is a URL, a port/],
    [cluster({ redisOptions: { password: 'secret', tls: { rejectUnauthorized: false } } }), /always checked/],
    [ioredis(t, { ...sentinels, role: 'slave' }), /locks are on the primary/],
    [ioredis(t, { ...sentinels, natMap: () => null }), /natMap/],
    [ioredis(t, { ...sentinels, sentinelTLS: { servername: 'a' }, enableTLSForSentinelMode: true, tls: {} }), /the sentinels have another one/],
    [{ options: { ...sentinels, name: undefined } }, /a service needs its name/],
    [ioredis(t, { ...sentinels, sentinelTLS: { rejectUnauthorized: false } }), /always checked/],
    [ioredis(t, { ...sentinels, enableTLSForSentinelMode: true, tls: { ca: 'text' } }), /name the files in tlsCa/],
    [ioredis(t, { password: 'secret', tls: { rejectUnauthorized: false } }), /always checked/],
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
