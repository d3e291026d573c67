// Clients: their arguments, the default one, and how they close.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import test from 'node:test'

import { Client, ClosedError, InvalidArgumentError, LockLostError, configure, lock, tryWithLock, withLock } from 'locktender'
import { ScriptedServer } from 'locktender/testing'

import { PATIENCE_MS, timed, until } from './support/observe.mjs'
import { startProxy } from './support/proxy.mjs'
import { run } from './support/script.mjs'
import { sharedServer, startServer } from './support/server.mjs'

async function clientOf(t, options) {
  // An attempt that isn't repeated may meet a stalled machine.
  const client = new Client((await sharedServer()).url, { responseTimeoutMs: PATIENCE_MS, ...options })
  t.after(() => client.close())
  return client
}

test('a client does no I/O before its first operation', async (t) => {
  const proxy = await startProxy(t, await sharedServer())
  const client = new Client(proxy.url)
  const lazy = client.lock(t.name)
  assert.equal(await proxy.connections(), 0)
  assert.equal(await lazy.inspect(), null)
  assert.equal(await proxy.connections(), 1)
  await client.close()
})

test('prefix, app and defaults for locks are the client\'s options', async (t) => {
  const client = await clientOf(t, { prefix: 'p:', app: 'billing', ttlMs: 30_000, waitMs: 0 })
  const held = await client.lock(t.name).acquire()
  assert.match(held.owner, /^app=billing host=\S+ pid=\d+ at=\S+Z id=[0-9a-f-]{36}$/)
  assert.equal(await (await sharedServer()).holder(`p:${t.name}`), held.owner)
  assert.ok(held.remainingMs() > 28_600 && held.remainingMs() <= 30_000)
  await assert.rejects(client.lock(t.name).acquire(), { code: 'ACQUIRE_TIMEOUT' })
  await held.release()
})

test('a unix socket is a server', async () => {
  const client = new Client((await sharedServer()).unixUrl)
  assert.equal(await client.withLock('unix', (held) => held.isValid()), true)
  await client.close()
})

test('several servers are a quorum, as a list or as one string', async (t) => {
  const three = () => ['a', 'b', 'c'].map((each) => `memory://${each}-${randomUUID()}`)
  for (const servers of [three(), three().join(',')]) {
    const client = new Client(servers)
    await client.initializeQuorum()
    assert.equal(await client.withLock(t.name, () => 'done'), 'done')
    assert.equal((await client.checkServers()).length, 3)
    await client.close()
  }
})

test('check tells what a server guarantees', async (t) => {
  const client = await clientOf(t)
  const { tookMs, value: [report] } = await timed(() => client.checkServers())
  assert.equal(report.failure, null)
  assert.match(report.version, /^(redis|valkey) \d+\.\d+/)
  assert.deepEqual([report.role, report.persistence, report.eviction], ['master', 'none', 'noeviction'])
  assert.ok(Math.abs(report.clockOffsetMs) <= tookMs + 1) // one clock, read at two moments
  assert.deepEqual([report.denied, Array.isArray(report.warnings)], [[], true])
})

test('check tells which rights are missing', async (t) => {
  const server = await startServer(t, { users: { app: ['pw', '~* &* +@all -pttl'] } })
  const client = new Client(`redis://app:pw@127.0.0.1:${server.port}`)
  const [report] = await client.checkServers()
  assert.deepEqual(report.denied, ['PTTL of :~lt:probe, to read how long a lock remains'])
  assert.ok(report.warnings.some((warning) => warning.includes('a right is missing: PTTL')))
  await client.close()
})

test('check tells of a server that does not answer', async () => {
  const client = new Client(new ScriptedServer('always any: fail refused'), { unavailableAfterMs: 100 })
  const [report] = await client.checkServers()
  assert.equal(report.failure.kind, 'refused')
  assert.equal(report.version, null)
})

test('without a URL the choices are named by the first operation, and silence is not one', async (t) => {
  const program = `
    const client = new Client({ prefix: 'p:' })
    const ends = [client.lock(name).acquire(), client.checkServers(), client.initializeQuorum(), lock(name).acquire()]
    for (const { reason } of await Promise.allSettled(ends)) {
      say(reason.code, reason.message.includes('LOCKTENDER_URL'), reason.message.includes('memory://'))
    }
    try { client.lock('') } catch (error) { say(error.message.split(':')[0]) }
    await client.close()`
  assert.deepEqual(await run(t, program, await sharedServer(), t.name), [...Array(4).fill('INVALID_ARGUMENT true true'), 'name'])
})

test('a client that a module makes finds the URL that is set later, and keeps it', async (t) => {
  const program = `
    const client = new Client({ prefix: 'p:' })
    const recipe = client.lock(name)
    await recipe.acquire().catch((error) => say(error.code))
    process.env.LOCKTENDER_URL = url
    const held = await recipe.acquire()
    process.env.LOCKTENDER_URL = 'memory://elsewhere'
    say(String(await new Client(url, { prefix: 'p:' }).lock(name).tryAcquire()), String(await client.lock(name).tryAcquire()))
    say((await held.release()).outcome)`
  assert.deepEqual(await run(t, program, await sharedServer(), t.name), ['INVALID_ARGUMENT', 'null null', 'released'])
})

test('the default client is made of LOCKTENDER_URL at the first operation', async (t) => {
  const program = `
    const early = lock(name)
    process.env.LOCKTENDER_URL = url
    const held = await early.acquire()
    say(String(await new Client(url).lock(name).tryAcquire()), (await held.release()).outcome)`
  assert.deepEqual(await run(t, program, await sharedServer(), t.name), ['null released'])
})

test('configure sets the default client, and locks that were used before keep theirs', async (t) => {
  const [one, other] = [`memory://${randomUUID()}`, `memory://${randomUUID()}`]
  const client = configure(one, { ttlMs: 200_000 })
  assert.ok(client instanceof Client)
  const first = await lock(t.name).acquire()
  assert.ok(first.remainingMs() > 20_000 && first.remainingMs() <= 200_000)
  assert.deepEqual(await tryWithLock(t.name, () => 1), { ran: false })
  configure(other)
  assert.deepEqual(await tryWithLock(t.name, { ttlMs: 5_000 }, (held) => held.name), { ran: true, result: t.name })
  assert.equal(await withLock(t.name, { waitMs: 0 }, () => 'mine'), 'mine')
  assert.equal((await first.release()).outcome, 'released')
  await client.close()
})

test('closing loses and gives back what is held, and ends what waits', async (t) => {
  const server = await sharedServer()
  const client = new Client(server.url)
  const held = await client.lock(t.name, { ttlMs: 600_000 }).acquire()
  const { signal } = held
  const waiting = assert.rejects(client.lock(t.name).acquire(), ClosedError)
  await client.close()
  await waiting
  assert.equal(held.isValid(), false)
  await until(() => signal.aborted)
  assert.ok(signal.reason instanceof LockLostError)
  assert.equal(signal.reason.reason, 'closed')
  assert.equal(await server.command('EXISTS', t.name), 0)
})

test('a closed client says so, and closes again', async (t) => {
  const client = new Client((await sharedServer()).url)
  const before = client.lock(t.name)
  await client.close()
  await client.close()
  await assert.rejects(before.acquire(), ClosedError)
  await assert.rejects(before.tryAcquire(), ClosedError)
  await assert.rejects(before.inspect(), ClosedError)
  await assert.rejects(client.checkServers(), ClosedError)
  await assert.rejects(client.withLock(t.name, () => assert.fail('ran')), ClosedError)
})

test('await using closes a client', async (t) => {
  const client = new Client(`memory://${randomUUID()}`)
  await client[Symbol.asyncDispose]()
  await assert.rejects(client.lock(t.name).acquire(), ClosedError)
})

test('f28: close with everything under way is ordered and touches no foreign key', async (t) => {
  const server = await sharedServer()
  const client = new Client(server.url, { responseTimeoutMs: PATIENCE_MS, ttlMs: 600_000 })
  const held = await Promise.all(Array.from({ length: 20 }, (_, at) => client.lock(`${t.name} ${at}`).acquire()))
  await server.command('SET', t.name, 'foreign')
  const waiting = Array.from({ length: 5 }, () => client.lock(t.name).acquire())
  const body = client.withLock(`${t.name} body`, ({ signal }) => new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
  }))
  const ends = Promise.allSettled([...waiting, body])
  await until(async () => await server.command('EXISTS', `${t.name} body`))
  const { tookMs } = await timed(() => client.close())
  assert.ok(tookMs < 2_000, `took ${tookMs} ms`)
  assert.deepEqual((await ends).map(({ reason }) => reason.code), [...Array(5).fill('CLOSED'), 'LOCK_LOST'])
  assert.ok(held.every((each) => !each.isValid()))
  for (const each of held) assert.equal(await server.command('EXISTS', each.name), 0)
  assert.equal(await server.command('GET', t.name), 'foreign')
})

test('f28: close is bounded while the server is silent', async (t) => {
  const server = await startServer(t)
  const client = new Client(server.url, { responseTimeoutMs: 300 })
  const held = await client.lock(t.name).acquire()
  server.pause()
  const { tookMs } = await timed(() => client.close())
  server.resume()
  assert.ok(tookMs < 1_000, `took ${tookMs} ms`)
  assert.equal(held.isValid(), false)
})

test('servers that are none are refused, without a word of the password', () => {
  const wrong = ['', 'localhost', 'redis:/localhost', 'nonsense://:geheim@localhost', 'memory://', 'redis://:geheim@localhost:port', '\ud800',
    [], ['redis://:geheim@a', 7], ['redis://a', 'redis://a'], 7, null, [{}], Symbol('x')]
  for (const servers of wrong) {
    assert.throws(() => new Client(servers), (error) => {
      assert.ok(error instanceof InvalidArgumentError, String(error))
      assert.equal(error.code, 'INVALID_ARGUMENT')
      assert.ok(!error.message.includes('geheim'), error.message)
      return /url/.test(error.message)
    })
  }
})
