// Loss: how a holder is notified, and the warning about a holder that never checked.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import test from 'node:test'

import { Client, LockLostError } from 'locktender'
import { ScriptedServer } from 'locktender/testing'

import { until } from './support/observe.mjs'
import { run } from './support/script.mjs'
import { sharedServer } from './support/server.mjs'

const server = await sharedServer()

function clientOf(t, source = `memory://${randomUUID()}`) {
  const client = new Client(source)
  t.after(() => client.close())
  return client
}

/** The client's events, of the kinds that speak of losses. */
function heardBy(client) {
  const heard = []
  client.on('event', ({ kind, message }) => heard.push(kind === 'warning' ? message : kind))
  return heard
}

/** A hold that has lost its lock, of which the holder was told nothing. */
async function lostUnseen(client, heard, name) {
  const before = heard.length
  const held = await client.lock(name, { ttlMs: 3_000, maxHoldMs: 100 }).acquire()
  await until(() => heard.slice(before).includes('lost'))
  return held
}

test('lost is the loss, once and for all', async (t) => {
  const client = clientOf(t, new ScriptedServer('always extend: gone'))
  const held = await client.lock(t.name, { ttlMs: 2_500 }).acquire()
  const { lost } = held
  assert.equal(held.lost, lost)
  const loss = await lost
  assert.ok(loss instanceof LockLostError)
  assert.deepEqual([loss.reason, loss.lockName, held.isValid()], ['missing', t.name, false])
  assert.equal(await held.lost, loss)
})

test('lost is null once the lock was given back, or handed over', async (t) => {
  const client = clientOf(t)
  const held = await client.lock(t.name).acquire()
  const { lost } = held
  await held.release()
  assert.equal(await lost, null)
  const moved = await client.lock(t.name).acquire()
  moved.handOver()
  assert.equal(await moved.lost, null)
})

test('a program that waits for nothing but lost lives until then', async (t) => {
  const program = `
    const client = new Client(url)
    const held = await client.lock(name, { ttlMs: 3_000, maxHoldMs: 700 }).acquire()
    say((await held.lost).reason)`
  assert.deepEqual(await run(t, program, server, t.name), ['max_hold'])
})

test('a hold of which only lost is awaited is renewed, and not garbage', async (t) => {
  const program = `
    const client = new Client(url)
    const acquire = async () => (await client.lock(name, { ttlMs: 2_500, maxHoldMs: 4_000 }).acquire()).lost
    const lost = acquire()
    for (let at = 0; at < 5; at++) { await sleep(50); gc() }
    client.on('warning', ({ message }) => say(message))
    const loss = await Promise.race([lost, sleep(60_000, 'still held', { ref: false })])
    say(loss.reason)`
  assert.deepEqual(await run(t, program, server, t.name, { flags: ['--expose-gc'] }), ['max_hold'])
})

test('the overrun of a loss is that at the end of the body, not with the time that the servers take', async (t) => {
  const server = new ScriptedServer('always extend: silence\nalways release: silence', { responseTimeoutMs: 200 })
  const client = clientOf(t, server)
  const expired = []
  client.on('expired', (event) => expired.push(event))
  const error = await client.withLock(t.name, { ttlMs: 1_500 }, async (held) => { await held.lost }).catch((error) => error)
  assert.ok(error instanceof LockLostError)
  await until(() => expired.length)
  assert.equal(error.overrunMs, expired[0].overrunMs)
})

const unseen = /never asked whether it still had the lock/

const ends = {
  'a release in finally': async (held) => {
    try {
      // the work
    } finally {
      await held.release()
    }
  },
  'await using': (held) => held[Symbol.asyncDispose](),
}
for (const [way, end] of Object.entries(ends)) {
  test(`a loss that nobody saw is warned of by ${way}`, async (t) => {
    const client = clientOf(t)
    const heard = heardBy(client)
    const warning = []
    client.on('warning', (event) => warning.push(event))
    await end(await lostUnseen(client, heard, t.name)).catch((error) => assert.ok(error instanceof LockLostError))
    await until(() => heard.some((each) => unseen.test(each)))
    assert.deepEqual([warning.length, warning[0].lockName, warning[0].reason], [1, t.name, 'max_hold'])
  })
}

/** The warnings of the process until the end of the test. */
function warnings(t) {
  const found = []
  const note = (warning) => found.push(warning)
  process.on('warning', note)
  t.after(() => process.off('warning', note))
  return found
}

test('a loss that nobody saw is a warning of the process at the release, and an error of the disposal', async (t) => {
  const client = clientOf(t)
  const warned = warnings(t)
  const deaf = async () => {
    const held = await client.lock(t.name, { ttlMs: 3_000, maxHoldMs: 100 }).acquire()
    // Nothing that may be asked of a hold, or listened to: this is the work.
    await until(async () => (await client.lock(t.name).inspect()) === null)
    return held
  }
  await (await deaf()).release()
  await until(() => warned.length > 0)
  assert.deepEqual([warned[0].name, warned[0].code], ['LocktenderWarning', 'LOCKTENDER_LOST_UNNOTICED'])
  assert.match(warned[0].message, /^lock "a loss that nobody saw is .*" was lost before its work ended, and the work never asked/)
  await assert.rejects((await deaf())[Symbol.asyncDispose](), { code: 'LOCK_LOST', reason: 'max_hold', lockName: t.name })
  await until(() => warned.length > 1)
  await (await client.lock(t.name).acquire()).release()
  await (await client.lock(t.name).acquire())[Symbol.asyncDispose]()
  client.on('lost', () => undefined)
  await (await deaf()).release()
  assert.equal(warned.length, 2)
})

test('a key that somebody took away unnoticed is a loss for the disposal, too', async (t) => {
  const client = clientOf(t, new ScriptedServer('always release: gone'))
  const held = await client.lock(t.name).acquire()
  await assert.rejects(held[Symbol.asyncDispose](), { code: 'LOCK_LOST', reason: 'missing' })
})

test('a client that is closed below its holds makes no loss of the disposal', async () => {
  const client = new Client(`memory://${randomUUID()}`)
  const held = await client.lock('closed below').acquire()
  await client.close()
  await held[Symbol.asyncDispose]()
})

const looks = {
  'looked at signal': (held) => held.signal.aborted,
  'asked isValid()': (held) => held.isValid(),
  'asked remainingMs()': (held) => held.remainingMs(),
  'called check()': (held) => assert.throws(() => held.check(), LockLostError),
  'extended': (held) => assert.rejects(held.extend(), LockLostError),
  'awaited lost': (held) => held.lost,
}
test('a loss is not warned of to a holder that saw it', async (t) => {
  const client = clientOf(t)
  const heard = heardBy(client)
  const warned = warnings(t)
  for (const [look, saw] of Object.entries(looks)) {
    for (const [way, end] of Object.entries(ends)) {
      const held = await lostUnseen(client, heard, `${look} ${way}`)
      await saw(held)
      await end(held)
    }
  }
  const asked = await client.lock('asked before').acquire()
  asked.signal
  await asked.release()
  assert.deepEqual(warned, [])
  assert.deepEqual(heard.filter((each) => unseen.test(each)), [])
})

test('a body that fails with its loss is not warned of', async (t) => {
  const client = clientOf(t)
  const heard = heardBy(client)
  await assert.rejects(client.withLock(t.name, { ttlMs: 3_000, maxHoldMs: 100 }, () => until(() => heard.includes('lost'))), LockLostError)
  assert.deepEqual(heard.filter((each) => unseen.test(each)), [])
})
