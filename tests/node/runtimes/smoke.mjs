// A smoke test for every JavaScript runtime; runtimes.test.mjs runs it in each. `await using` is the language's own here.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

import { AcquireTimeoutError, Client, LockLostError } from 'locktender'

const commonJs = createRequire(import.meta.url)('locktender')
assert.equal(commonJs.Client, Client)

const client = new Client()
const name = `smoke:${process.pid}`

const fence = await client.withLock(name, { ttlMs: 60_000 }, async (held) => {
  await assert.rejects(client.lock(name, { waitMs: 50 }).acquire(), AcquireTimeoutError)
  return held.fence
})
assert.ok(Number.isSafeInteger(fence))

// One after the other, and all at once.
for (let round = 0; round < 50; round += 1) await (await client.lock(name).acquire()).release()
const many = await Promise.all(Array.from({ length: 100 }, (_, number) => client.lock(`${name}:${number}`).acquire()))
for (const { outcome } of await Promise.all(many.map((held) => held.release()))) assert.equal(outcome, 'released')

{
  await using held = await client.lock(name).acquire()
  assert.equal(await client.lock(name).tryAcquire(), null)
  held.check()
}
assert.equal(await client.lock(name).inspect(), null)

const reader = await (await client.lock(name).acquire()).downgrade()
assert.equal(await client.withReadLock(name, (beside) => beside.fence), reader.fence)
await reader.release()
assert.deepEqual(await client.tryWithSemaphore(name, { permits: 2 }, () => 7), { ran: true, result: 7 })

const lost = await client.lock(name, { ttlMs: 2_000, renew: false }).acquire()
await new Promise((resolve, reject) => {
  const late = setTimeout(reject, 60_000, new Error('the loss was not told'))
  lost.signal.addEventListener('abort', () => resolve(clearTimeout(late)))
})
assert.ok(lost.signal.reason instanceof LockLostError)

const held = await client.lock(name).acquire()
const controller = new AbortController()
const waiting = client.lock(name).acquire({ signal: controller.signal })
setTimeout(() => controller.abort(new Error('enough')), 50)
await assert.rejects(waiting, { message: 'enough' })
assert.ok(held.isValid())
console.log(`ends with ${name} held`) // by itself, and gives it back
