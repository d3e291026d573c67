// Several locks that are acquired together: what the contract can't say of them.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import test from 'node:test'
import { inspect } from 'node:util'

import * as locktender from 'locktender'
import { AcquireTimeoutError, Client, configure, Hold, InvalidArgumentError, LockLostError, MultiHold, MultiLock, NotHeldError } from 'locktender'

import { until } from './support/observe.mjs'

const NAMES = ['account:1', 'account:2']
const memory = () => `memory://${randomUUID()}`
const refused = (argument, why = /./) => (error) =>
  error instanceof InvalidArgumentError && error.message.startsWith(`${argument}: `) && why.test(error.message)

/** Two clients of one place. */
function clients(t, options = {}) {
  const url = memory()
  const both = [new Client(url, options), new Client(url)]
  t.after(() => Promise.all(both.map((client) => client.close())))
  return both
}

test('all are held, or none', async (t) => {
  const [client, other] = clients(t)
  const accounts = client.multiLock(NAMES, { ttlMs: 9_000 })
  assert.ok(accounts instanceof MultiLock && Object.isFrozen(accounts.names))
  assert.deepEqual(accounts.names, NAMES)
  const hold = await accounts.acquire()
  assert.ok(hold instanceof MultiHold && !(hold instanceof Hold) && hold.isValid() && hold.remainingMs() > 8_000)
  assert.deepEqual([hold.names, [...hold.fences.keys()]], [NAMES, NAMES])
  for (const name of NAMES) assert.equal((await other.lock(name).inspect()).owner, hold.owner)
  assert.equal(await other.multiLock([...NAMES].reverse()).tryAcquire(), null)
  assert.deepEqual(client.holds().map(({ name, kind }) => [name, kind]), NAMES.map((name) => [name, 'multi_lock']))
  await hold.extend({ ttlMs: 60_000 })
  hold.check()
  assert.ok(hold.remainingMs() > 50_000)
  assert.deepEqual(JSON.parse(JSON.stringify(hold)), { names: NAMES, owner: hold.owner, fences: Object.fromEntries(hold.fences) })
  assert.match(inspect(hold), /^MultiHold \{.*account:2/s)
  assert.equal((await hold.release()).outcome, 'released')
  assert.equal(await hold.lost, null)
  assert.throws(() => hold.check(), (error) => error instanceof NotHeldError && error.message.includes('account:1, account:2'))
  await other.withLock('account:2', async () => {
    assert.equal(await accounts.tryAcquire(), null)
    assert.equal(await client.lock('account:1').inspect(), null)
  })
})

test('fences rise for each name', async (t) => {
  const [client] = clients(t)
  const before = await client.withLock('account:2', ({ fence }) => fence)
  const fences = await client.withMultiLock(NAMES, (hold) => hold.fences)
  assert.ok(fences.get('account:2') > before)
  const later = await client.withMultiLock([...NAMES].reverse(), { ttlMs: 5_000 }, (hold) => hold.fences)
  for (const name of NAMES) assert.ok(later.get(name) > fences.get(name))
})

test('`await using`, withMultiLock and tryWithMultiLock give all of them back', async (t) => {
  const [client, other] = clients(t)
  await (await client.multiLock(NAMES).acquire())[Symbol.asyncDispose]()
  const thrown = new Error('of the body')
  await assert.rejects(client.withMultiLock(NAMES, () => Promise.reject(thrown)), (error) => error === thrown)
  const signal = AbortSignal.abort(new Error('given up'))
  await assert.rejects(client.withMultiLock(NAMES, { signal }, () => assert.fail('ran')), /given up/)
  assert.deepEqual(await client.tryWithMultiLock(NAMES, { waitMs: 5_000 }, () => 'ran'), { ran: true, result: 'ran' })
  await other.withLock('account:1', async () => {
    assert.deepEqual(await client.tryWithMultiLock(NAMES, () => assert.fail('ran')), { ran: false })
  })
  for (const name of NAMES) assert.equal(await other.lock(name).inspect(), null)
})

test('the busy lock is named, and a wait for it ends with its release', async (t) => {
  const [client, other] = clients(t)
  const busy = await other.lock('account:2').acquire()
  await assert.rejects(client.multiLock(NAMES, { waitMs: 10 }).acquire(), (error) => error instanceof AcquireTimeoutError && error.lockName === 'account:2')
  const acquiring = client.multiLock(NAMES).acquire()
  await until(async () => (await other.lock('account:2').inspect())?.waiters > 0)
  await busy.release()
  await (await acquiring).release()
})

test('the loss of one ends the hold, and the others stay taken until its end', async (t) => {
  const [client, other] = clients(t)
  const hold = await client.multiLock(NAMES, { ttlMs: 300 }).acquire()
  const { signal, lost } = hold
  assert.ok(await other.lock('account:2').forceRelease())
  const error = await lost
  assert.ok(error instanceof LockLostError && error.lockName === 'account:2' && !hold.isValid())
  await until(() => signal.aborted)
  assert.equal(signal.reason.lockName, 'account:2')
  assert.equal((await other.lock('account:1').inspect()).owner, hold.owner)
  assert.equal((await hold.release()).outcome, 'expired')
  assert.equal(await other.lock('account:1').inspect(), null)
})

test('what they can\'t be is refused', async (t) => {
  const [client] = clients(t)
  configure(memory())
  for (const names of ['account:1', undefined, 5, new Set(NAMES), client, () => NAMES]) {
    for (const make of [() => client.multiLock(names), () => locktender.multiLock(names)]) assert.throws(make, refused('names', /must be an array of names/))
    for (const subject of [client, locktender]) {
      for (const around of ['withMultiLock', 'tryWithMultiLock']) await assert.rejects(subject[around](names, () => assert.fail('ran')), refused('names'))
    }
  }
  for (const names of [['a', 5], [undefined], [, 'a'], ['\ud800']]) assert.throws(() => client.multiLock(names), refused('names'))
  assert.throws(() => client.multiLock([]), refused('names', /at least one/))
  assert.throws(() => client.multiLock(['a', 'b', 'a']), refused('names', /"a" is there twice/))
  assert.throws(() => client.multiLock(Array.from({ length: 17 }, String)), refused('names', /at most 16/))
  assert.throws(() => client.multiLock(['a', '']), InvalidArgumentError)
  assert.throws(() => client.multiLock(NAMES, { fair: true }), refused('fair'))
  assert.throws(() => client.multiLock(NAMES, { minHoldMs: 5_000 }), refused('minHoldMs'))
  assert.throws(() => client.multiLock(NAMES, { colour: 1 }), refused('colour'))
  await assert.rejects(client.withMultiLock(NAMES, () => 1, { ttlMs: 5_000 }), refused('options', /withMultiLock\(names, \{ ttlMs: 10_000 \}, body\)/))
  const quorum = new Client([memory(), memory(), memory()])
  assert.throws(() => quorum.multiLock(NAMES), /quorum/)
  await quorum.close()
})

test('what only one lock has says what there is instead', async (t) => {
  const [client] = clients(t)
  const accounts = client.multiLock(NAMES)
  const hold = await accounts.acquire()
  for (const [subject, word, ours] of [[accounts, 'inspect', 'lock(name)'], [accounts, 'forceRelease', 'lock(name)'], [hold, 'handOver', 'handed over'], [hold, 'downgrade', 'one lock']]) {
    assert.throws(() => subject[word](), (error) => error instanceof TypeError && error.message.startsWith(`there is no ${word}() here: `) && error.message.includes(ours))
  }
  for (const method of ['release', 'extend']) assert.throws(() => accounts[method](), NotHeldError)
  assert.deepEqual([hold.name, hold.fence, accounts.name], [undefined, undefined, undefined])
  await hold.release()
})

test('events have all names', async (t) => {
  const [client] = clients(t)
  const events = []
  client.on('event', (event) => events.push(event))
  await client.withMultiLock(NAMES, () => undefined)
  await client.withLock('c', () => undefined)
  await until(() => events.filter(({ kind }) => kind === 'released').length === 3)
  const released = events.filter(({ kind }) => kind === 'released').map(({ lockName, names, lockKind }) => [lockName, names, lockKind])
  assert.deepEqual(released.sort(), [['account:1', NAMES, 'multi_lock'], ['account:2', NAMES, 'multi_lock'], ['c', null, 'lock']])
  for (const { names, lockKind } of events) assert.deepEqual(names, lockKind === 'multi_lock' ? NAMES : null)
})

test('the default client has them, too', async (t) => {
  const accounts = locktender.multiLock(NAMES)
  const client = configure(memory())
  t.after(() => client.close())
  const hold = await accounts.acquire()
  assert.deepEqual(await locktender.tryWithMultiLock(NAMES, () => assert.fail('ran')), { ran: false })
  await hold.release()
  assert.deepEqual(await locktender.withMultiLock(NAMES, ({ names }) => names), NAMES)
})
