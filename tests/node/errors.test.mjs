// Errors: a class for each code, the fields that it carries, and every argument that is refused.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import test from 'node:test'
import { inspect } from 'node:util'

import * as locktender from 'locktender'
import { ScriptedServer } from 'locktender/testing'

import { until } from './support/observe.mjs'

const { Client, InvalidArgumentError, LockError } = locktender

const memory = () => new Client(`memory://${randomUUID()}`)

/** What an attempt at a server that plays this script fails with. */
async function failing(script, options = { waitMs: 0 }) {
  const client = new Client(new ScriptedServer(script), { unavailableAfterMs: 100, ...options })
  const error = await client.lock('orders').acquire().then(() => assert.fail('acquired'), (error) => error)
  await client.close()
  return error
}

const failures = [
  ['acquire: busy owner=somebody ttl=500', 'ACQUIRE_TIMEOUT', 'AcquireTimeoutError'],
  ['always any: fail refused', 'UNAVAILABLE', 'UnavailableError'],
  ['always any: fail denied', 'DENIED', 'DeniedError'],
  ['acquire: conflict type=list', 'KEY_CONFLICT', 'KeyConflictError'],
]

for (const [script, code, name] of failures) {
  test(`${code} is ${name}`, async () => {
    const error = await failing(script)
    assert.ok(error instanceof locktender[name] && error instanceof LockError && error instanceof Error)
    assert.deepEqual([error.code, error.name, error.lockName], [code, name, 'orders'])
    assert.ok(error.docsUrl.endsWith(`/docs/errors.md#${code.toLowerCase()}`), error.docsUrl)
    assert.match(error.message, /^[^\n]*orders[^\n]*$/)
    assert.ok(String(error).startsWith(`${name}: `))
    assert.match(error.stack, /errors\.test\.mjs/, 'it shows who waited')
    assert.ok(inspect(error).includes(`code: '${code}'`))
  })
}

test('every code has a class of its own, all under LockError', () => {
  const names = Object.keys(locktender).filter((name) => name.endsWith('Error')).sort()
  assert.deepEqual(names, ['AcquireTimeoutError', 'ClosedError', 'DeadlockError', 'DeniedError', 'ForkedError', 'InternalError', 'InvalidArgumentError',
    'JobDeadError', 'KeyConflictError', 'LockError', 'LockLostError', 'NotHeldError', 'UnavailableError'])
  for (const name of names) {
    assert.equal(locktender[name].name, name)
    assert.ok(name === 'LockError' || locktender[name].prototype instanceof LockError)
  }
})

test('a timeout carries the holder, and what remains to it', async () => {
  const error = await failing('acquire: busy owner=somebody ttl=50000')
  assert.equal(error.holder, 'somebody')
  assert.ok(error.remainingMs > 48_900 && error.remainingMs <= 50_000)
  assert.equal((await failing('acquire: busy owner=redis-py ttl=none')).remainingMs, Infinity)
})

test('times are whole milliseconds', async () => {
  for (const ttl of [2_970, 2_780, 1_001, 60]) {
    const error = await failing(`acquire: busy owner=somebody ttl=${ttl}`)
    assert.ok(Number.isInteger(error.remainingMs), String(error.remainingMs))
    assert.ok(error.message.includes(`(${error.remainingMs} ms remain)`), error.message)
  }
  const client = memory()
  const held = await client.lock('orders').acquire()
  const [hold] = client.holds()
  for (const ms of [held.remainingMs(), hold.remainingMs, hold.heldForMs]) assert.ok(Number.isInteger(ms), String(ms))
  await client.close()
})

test('servers are told one by one', async () => {
  for (const [script, kind] of [['always any: fail refused', 'refused'], ['always any: fail denied', 'denied']]) {
    const { servers } = await failing(script)
    assert.deepEqual(servers.map((each) => [each.server, each.kind]), [['scripted://test', kind]])
    assert.ok(servers[0].message)
  }
})

test('a loss carries reason, next owner and overrun', async () => {
  const client = new Client(new ScriptedServer('always extend: busy owner=rival ttl=500'))
  const held = await client.lock('orders', { ttlMs: 2_500 }).acquire()
  await until(() => held.signal.aborted)
  const { reason: error } = held.signal
  assert.ok(error instanceof locktender.LockLostError)
  assert.deepEqual([error.code, error.reason, error.nextOwner, error.lockName], ['LOCK_LOST', 'taken', 'rival', 'orders'])
  assert.equal(typeof error.overrunMs, 'number')
  assert.equal('result' in error, false)
  await client.close()
})

const notTimes = [NaN, -Infinity, -1, -0.001, true, '1', 1n, [], {}, null, 1e300, new Date(), Symbol('x')]

test('times that are none are refused, and named', () => {
  const client = memory()
  for (const option of ['ttlMs', 'waitMs', 'maxHoldMs']) {
    for (const value of notTimes) {
      assert.throws(() => client.lock('a', { [option]: value }), named(option))
      assert.throws(() => new Client('memory://a', { [option]: value }), named(option))
    }
  }
  for (const option of ['connectTimeoutMs', 'responseTimeoutMs', 'unavailableAfterMs', 'maxTtlMs']) {
    for (const value of [...notTimes, Infinity]) assert.throws(() => new Client('memory://a', { [option]: value }), named(option))
  }
  assert.throws(() => client.lock('a', { ttlMs: Infinity }), named('ttlMs'))
})

test('times too short to be kept are refused', () => {
  for (const value of [0, 1]) {
    assert.throws(() => memory().lock('a', { ttlMs: value }), named('ttlMs'))
    assert.throws(() => memory().lock('a', { maxHoldMs: value }), named('maxHoldMs'))
  }
})

test('options that are wrong are named', () => {
  const wrong = [['renew', 1], ['renew', 'yes'], ['renew', null], ['prefix', 7], ['prefix', '\ud800'], ['app', Buffer.from('billing')],
    ['app', 'x'.repeat(1_000)], ['tlsCa', 7], ['tlsName', 7], ['addressMap', 'a:1'], ['addressMap', { 'a:1': 7 }], ['credentials', 'x'], ['tlsCert', 'only-one.pem'], ['ttl', 5], ['prefetch', null], ['signal', new AbortController().signal],
    ['__proto__x', 1], ['constructor', 1], ['toString', 1]]
  for (const [option, value] of wrong) assert.throws(() => new Client('memory://a', { [option]: value }), named(option))
  for (const options of [null, 7, 'ttlMs', [], true]) {
    assert.throws(() => new Client('memory://a', options), named('options'))
    assert.throws(() => memory().lock('a', options), named('options'))
    assert.throws(() => locktender.lock('a', options), named('options'))
  }
})

test('a typo is named everywhere', async () => {
  const client = memory()
  const typo = { tttlMs: 5 }
  for (const call of [() => client.lock('a', typo), () => locktender.lock('a', typo), () => new Client('memory://a', typo)]) {
    assert.throws(call, /^InvalidArgumentError: tttlMs: there is no option of this name; did you mean ttlMs\? \(given: 5\)$/)
  }
  const body = () => assert.fail('ran')
  for (const call of [() => client.withLock('a', typo, body), () => client.tryWithLock('a', typo, body), () => client.adopt('a', typo),
    () => client.lock('a').acquire(typo), () => client.lock('a').tryAcquire(typo), () => locktender.withLock('a', typo, body)]) {
    const before = process.env.LOCKTENDER_URL
    process.env.LOCKTENDER_URL = 'memory://typo'
    await assert.rejects(call(), named('tttlMs')).finally(() => before ?? delete process.env.LOCKTENDER_URL)
  }
  assert.throws(() => client.lock('a', { prefix: 'x' }), named('prefix'))
})

test('an option that is undefined is not given', async () => {
  const options = { ttlMs: undefined, waitMs: undefined, renew: undefined, maxHoldMs: undefined }
  const client = new Client(`memory://${randomUUID()}`, { ...options, prefix: undefined })
  const held = await client.lock('a', options).acquire({ signal: undefined })
  assert.ok(held.remainingMs() > 9_000)
  await held.release()
})

test('names that cannot be a lock\'s are refused at once', async () => {
  const client = memory()
  const bad = [undefined, null, 7, Buffer.from('a'), ['a'], '\ud800', '', 'x'.repeat(1_025), 'a\0b', 'a:~lt:b', 'a}', '}a{', '{a}{b}']
  for (const name of bad) {
    assert.throws(() => client.lock(name), named('name'))
    await assert.rejects(client.withLock(name, () => assert.fail('ran')), named('name'))
  }
  for (const name of ['x'.repeat(1_024), 'ü'.repeat(512), '鍵 🔒', '{tag}:a', ' ']) {
    assert.equal(await client.withLock(name, (held) => held.name), name)
  }
})

test('a body that is none is refused before anything is acquired', async () => {
  const client = memory()
  for (const body of [undefined, null, 7, 'body', {}]) {
    await assert.rejects(client.withLock('a', body), named('body'))
    await assert.rejects(client.withLock('a', {}, body), named('body'))
    await assert.rejects(client.tryWithLock('a', {}, body), named('body'))
  }
  assert.equal(await client.lock('a').inspect(), null)
})

function named(option) {
  return (error) => {
    assert.ok(error instanceof InvalidArgumentError, inspect(error))
    assert.equal(error.code, 'INVALID_ARGUMENT')
    assert.ok(error.message.startsWith(option), `${option}: ${error.message}`)
    assert.ok(error.message.length < 400)
    return true
  }
}
