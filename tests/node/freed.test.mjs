// A released hold: nothing of it stays in the core, and it answers as before.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'

import { Client, LockLostError, NotHeldError } from 'locktender'

import { long } from './support/long.mjs'
import { until } from './support/observe.mjs'
import { run } from './support/script.mjs'
import { sharedServer } from './support/server.mjs'

const memory = { url: `memory://${process.pid}-freed` }

const ways = {
  release: (held) => held.release(),
  disposal: (held) => held[Symbol.asyncDispose](),
  body: () => undefined,
}
for (const [way, end] of Object.entries(ways)) {
  test(`after a ${way} a hold has its data, and holds nothing`, async (t) => {
    const client = new Client(memory.url)
    let held, owner
    const body = async (given) => {
      held = given
      owner = (await client.lock(t.name).inspect()).owner
    }
    if (way === 'body') await client.withLock(t.name, body)
    else await end((await body(await client.lock(t.name).acquire()), held))

    assert.deepEqual({ ...held.toJSON(), fence: 0 }, { name: t.name, owner, fence: 0 })
    assert.ok(held.fence > 0)
    assert.match(inspect(held), /remainingMs: 0/)
    assert.deepEqual([held.isValid(), held.remainingMs()], [false, 0])
    const message = /is not held by this handle: it was already released; only the hold that acquire\(\) returned/
    const refusal = { name: 'NotHeldError', code: 'NOT_HELD', lockName: t.name, message }
    for (const call of [() => held.check(), () => held.handOver()]) assert.throws(call, refusal)
    for (const call of [() => held.extend(), () => held.extend({ byMs: 1 }), () => held.release()]) await assert.rejects(call, refusal)
    assert.deepEqual([held.signal.aborted, held.signal === held.signal], [false, true])
    assert.equal(await held.lost, null)
    await held[Symbol.asyncDispose]()
    await client.close()
  })
}

test('a wait for the loss that began before the release ends with it', async (t) => {
  const client = new Client(memory.url)
  const held = await client.lock(t.name).acquire()
  const { lost, signal } = held
  await held.release()
  assert.deepEqual([await lost, signal.aborted], [null, false])
  await client.close()
})

test('a hold that was lost tells of it after its release, too', async (t) => {
  const client = new Client(memory.url)
  const held = await client.lock(t.name, { maxHoldMs: 20 }).acquire()
  await until(() => !held.isValid())
  await held.release()
  assert.throws(() => held.check(), NotHeldError)
  assert.ok((await held.lost) instanceof LockLostError)
  await until(() => held.signal.aborted)
  await client.close()
})

test('a hold that is garbage after others were released is no longer renewed', async (t) => {
  const program = `
    const client = new Client(url)
    const warned = new Promise((resolve) => client.on('dropped', resolve))
    for (let at = 0; at < 3; at += 1) await client.withLock(name, () => undefined)
    await (async () => { await client.lock(name, { ttlMs: 2_500 }).acquire() })()
    for (let at = 0; at < 5; at++) { gc(); await sleep(5) }
    const { message } = await warned
    say(/without release/.test(message))
    await client.close()`
  assert.deepEqual(await run(t, program, memory, t.name, { flags: ['--expose-gc'] }), ['true'])
})

/** The memory of a process in which `callers` take and release `pairs` locks: at first and at most, in MB. */
const PAIRS = `
  const client = new Client(url)
  const [callers, pairs, begun] = process.argv.slice(3).map(Number)
  const mb = () => process.memoryUsage.rss() / 2 ** 20
  let [done, first, most] = [0, 0, 0]
  const caller = async (at) => {
    while (done < pairs) {
      await client.withLock(name + at, () => undefined)
      done += 1
      if (done === begun) first = mb()
      if (done % 1_000 === 0) most = Math.max(most, mb())
    }
  }
  await Promise.all(Array.from({ length: callers }, (_, at) => caller(at)))
  say(first, most)
  await client.close()`

test('released holds leave nothing behind that waits for a garbage collection', long, async (t) => {
  // V8's own share is kept small.
  const flags = ['--max-semi-space-size=1']
  const [line] = await run(t, PAIRS, memory, t.name, { flags, more: [16, 12_000, 2_000] })
  const [first, most] = line.split(' ').map(Number)
  assert.ok(most - first < 10, `${first} MB became ${most} MB`)
})

test('64 callers of withLock come to an end with what they take', long, async (t) => {
  const [line] = await run(t, PAIRS, await sharedServer(), t.name, { more: [64, 200_000, 100_000], limit: 400_000 })
  const [first, most] = line.split(' ').map(Number)
  assert.ok(most - first < 10, `${first} MB became ${most} MB`)
})
