// Failovers: a promoted replica is told of, every hold is confirmed, and quarantine keeps what the replica lacks.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Client } from 'locktender'

import { PATIENCE_MS, until } from './support/observe.mjs'
import { startProxy } from './support/proxy.mjs'
import { startServer } from './support/server.mjs'

const options = { config: ['repl-diskless-sync-delay 0'] }

async function era(server) {
  return /master_replid:(\S+)/.exec(await server.command('INFO', 'replication'))[1]
}

/** A replica that has its primary's data, and doesn't hear of what comes later. */
async function replicaOf(t, primary) {
  const replica = await startServer(t)
  await replica.command('REPLICAOF', '127.0.0.1', primary.port)
  await until(async () => (await replica.command('INFO', 'replication')).includes('master_link_status:up'))
  await replica.command('REPLICAOF', '127.0.0.1', 1)
  return replica
}

async function failOver(proxy, replica) {
  await replica.command('REPLICAOF', 'NO', 'ONE')
  await proxy.redirect(replica.port)
}

test('a promotion is told, and a hold that the replica lacks is lost at once', async (t) => {
  const primary = await startServer(t, options)
  const [replica, proxy, oldEra] = [await replicaOf(t, primary), await startProxy(t, primary), await era(primary)]
  const url = primary.urlAt(proxy.port)
  const client = new Client(url, { responseTimeoutMs: PATIENCE_MS })
  const told = []
  client.on('failed_over', (event) => told.push(event))
  const held = await client.lock('a', { ttlMs: 60_000 }).acquire()
  await failOver(proxy, replica)
  await (await client.lock('b').acquire()).release()
  // Long before the first renewal, which would come after twenty seconds.
  await until(() => held.signal.aborted)
  assert.equal(held.signal.reason.reason, 'missing')
  assert.deepEqual(
    told.map((event) => [event.oldReplicationId, event.newReplicationId, event.server, event.address]),
    [[oldEra, await era(replica), url, `127.0.0.1:${proxy.port}`]],
  )
  await client.close()
})

test('a failover is noticed without a call', async (t) => {
  for (const renew of [true, false]) {
    const primary = await startServer(t, options)
    const [replica, proxy] = [await replicaOf(t, primary), await startProxy(t, primary)]
    const client = new Client(primary.urlAt(proxy.port), { responseTimeoutMs: PATIENCE_MS })
    const told = []
    client.on('failed_over', (event) => told.push(event))
    // The first renewal would come after 200 s, the first look at where the name leads after 30 s.
    const held = await client.lock('a', { ttlMs: 600_000, renew }).acquire()
    await failOver(proxy, replica)
    await until(() => held.signal.aborted && told.length === 1)
    assert.equal(held.signal.reason.reason, 'missing')
    await client.close()
  }
})

test('with quarantine the promoted replica grants nothing, and gets the hold again', async (t) => {
  const primary = await startServer(t, options)
  const proxy = await startProxy(t, primary)
  const client = new Client(primary.urlAt(proxy.port), {
    failover: 'quarantine',
    unavailableAfterMs: 200,
    responseTimeoutMs: PATIENCE_MS,
  })
  await client.initializeQuorum()
  const replica = await replicaOf(t, primary)
  const held = await client.lock('a', { fair: true }).acquire()
  await failOver(proxy, replica)
  await assert.rejects(client.lock('b').acquire(), (error) => {
    assert.deepEqual([error.code, error.servers[0].kind], ['UNAVAILABLE', 'quarantine'])
    return true
  })
  await until(async () => (await replica.holder('a')) === held.owner)
  assert.ok(held.isValid())
  await client.close()
})

test('quarantine is an option of every client of one server', async (t) => {
  const server = await startServer(t)
  const client = new Client(server.url, { failover: 'quarantine', unavailableAfterMs: 200 })
  t.after(() => client.close())
  await client.initializeQuorum()
  await client.lock('a').acquire()
  const other = new Client(server.url, { failover: 'confirm' })
  t.after(() => other.close())
  await assert.rejects(other.lock('b').acquire(), { code: 'INVALID_ARGUMENT', message: /quarantine/ })
  assert.throws(() => new Client(server.url, { failover: 'never' }), { code: 'INVALID_ARGUMENT', message: /failover/ })
})

test('a grant counts when replicas have confirmed it', async (t) => {
  const primary = await startServer(t, options)
  const replica = await replicaOf(t, primary)
  const client = new Client(primary.url, { minReplicas: 1, replicasTimeoutMs: 50, unavailableAfterMs: 300 })
  t.after(() => client.close())
  await assert.rejects(client.lock('a').acquire(), (error) => {
    assert.deepEqual([error.code, error.servers.map((server) => server.kind)], ['UNAVAILABLE', ['not_replicated']])
    return /0 of 1 replicas/.test(error.message)
  })
  await until(async () => (await primary.command('EXISTS', 'a')) === 0)
  await replica.command('REPLICAOF', '127.0.0.1', primary.port)
  await until(async () => (await replica.command('INFO', 'replication')).includes('master_link_status:up'))
  await client.withLock('a', async (held) => {
    assert.equal(await replica.holder('a'), held.owner)
    await held.extend({ ttlMs: 20_000 })
  })
  assert.throws(() => new Client('memory://a', { minReplicas: 1 }), { code: 'INVALID_ARGUMENT', message: /^minReplicas: memory:\/\/a is/ })
})
