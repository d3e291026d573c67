// An election in Node: its signals, and what its work may return and throw. The contract has the rest.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { Client, configure, election, Hold, InvalidArgumentError, Leadership, LockLostError } from 'locktender'

import { PATIENCE_MS, until } from './support/observe.mjs'
import { sharedServer } from './support/server.mjs'

const server = await sharedServer()
// An attempt that isn't repeated may meet a stalled machine.
const client = new Client(server.url, { responseTimeoutMs: PATIENCE_MS })
after(() => client.close())

/** A promise that rejects with the signal's reason, as `fetch` does. */
const untilAborted = (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

test('a leadership is a hold, whose term is its fence', async (t) => {
  const leadership = await client.election(t.name).campaign()
  assert.ok(leadership instanceof Leadership && leadership instanceof Hold)
  assert.equal(leadership.term, leadership.fence)
  assert.equal(await client.election(t.name).tryCampaign(), null)
  assert.equal((await leadership.resign()).outcome, 'released')
})

test('an abort tells the work by its signal, and leading ends after the work', async (t) => {
  const [stop, reason] = [new AbortController(), new Error('the process is told to end')]
  let ended = false
  const work = async ({ signal, owner }) => {
    setImmediate(() => stop.abort(reason))
    await assert.rejects(untilAborted(signal), (error) => error === reason)
    assert.equal((await client.lock(t.name).inspect()).owner, owner)
    ended = true
    throw new Error('half done')
  }
  await assert.rejects(client.election(t.name).lead(work, { signal: stop.signal }), (error) => error === reason)
  assert.ok(ended)
  assert.equal(await client.lock(t.name).inspect(), null)
})

test('a loss ends the work by its signal, and the next work begins in a larger term', async (t) => {
  const [stop, terms] = [new AbortController(), []]
  const led = client.election(t.name, { ttlMs: 50, renew: false }).lead(async ({ term, signal }) => {
    terms.push(term)
    if (terms.length === 2) return stop.abort('enough')
    // A wait for the signal alone keeps no process alive.
    await sleep(PATIENCE_MS, undefined, { signal })
  }, { signal: stop.signal })
  await assert.rejects(led, (error) => error === 'enough')
  assert.ok(terms.length === 2 && terms[1] > terms[0], terms)
})

test('an abort ends a campaign, which leaves nothing', async (t) => {
  const leadership = await client.election(t.name).campaign()
  const stop = new AbortController()
  const waiting = client.election(t.name).lead(() => assert.fail('leads'), { signal: stop.signal })
  await until(async () => (await server.line(t.name)).length)
  stop.abort()
  await assert.rejects(waiting, { name: 'AbortError' })
  await leadership.resign()
  assert.equal(await client.lock(t.name).inspect(), null)
})

test('one call leads at a time, and another one after its end', async (t) => {
  const election = client.election(t.name)
  for (let times = 0; times < 2; times++) {
    const led = election.lead(async () => {
      await assert.rejects(election.lead(() => assert.fail('leads')), { code: 'INVALID_ARGUMENT', message: /leads already/ })
      throw new RangeError('enough')
    })
    await assert.rejects(led, RangeError)
  }
})

test('the loss of another lock is an error of the work', async (t) => {
  const other = await client.lock(`${t.name}, other`, { ttlMs: 20, renew: false }).acquire()
  await other.lost
  const led = client.election(t.name).lead(() => other.check())
  await assert.rejects(led, (error) => error instanceof LockLostError && error.lockName === other.name)
})

test('what is no work is refused, and so are the options of an election in the wrong place', async (t) => {
  await assert.rejects(client.election(t.name).lead(), InvalidArgumentError)
  await assert.rejects(client.election(t.name).campaign({ waitMs: 5 }), /waitMs is an option of the election: give it to election\(\)/)
  assert.throws(() => client.election(t.name, { signal: AbortSignal.abort() }), /election\.lead\(work, \{ signal \}\)/)
})

test('an observer ends by a break, by return, and by its signal', async (t) => {
  const leadership = await client.election(t.name).campaign()
  for await (const { leader, unknown } of client.election(t.name).observe()) {
    assert.deepEqual([leader.owner, leader.term, unknown], [leadership.owner, leadership.term, false])
    break
  }
  const returned = client.election(t.name).observe()
  await returned.next()
  const waiting = returned.next()
  assert.deepEqual(await returned.return(), { done: true, value: undefined })
  assert.deepEqual(await waiting, { done: true, value: undefined })
  assert.deepEqual(await returned.next(), { done: true, value: undefined })
  const stop = new AbortController()
  await assert.rejects(async () => {
    for await (const _ of client.election(t.name).observe({ signal: stop.signal })) stop.abort('enough')
  }, (error) => error === 'enough')
  await leadership.resign()
})

test('an election of the module stays with the default client of its first use', async (t) => {
  const made = election(t.name)
  assert.throws(() => election(t.name, { tllMs: 5 }), InvalidArgumentError)
  const first = configure(server.url, { responseTimeoutMs: PATIENCE_MS })
  t.after(() => first.close())
  const leadership = await made.campaign()
  assert.equal((await client.lock(t.name).inspect()).owner, leadership.owner)
  configure('memory://afterwards')
  assert.equal(await made.tryCampaign(), null)
  await leadership.resign()
})
