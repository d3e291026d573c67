// A lock is a recipe. What the contract can't say of an acquire of it, and of a body that runs under it.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { AcquireTimeoutError, Client, Lock, LockLostError, UnavailableError } from 'locktender'
import { ScriptedServer } from 'locktender/testing'

import { LOAD_MS, PATIENCE_MS, timed, until } from './support/observe.mjs'
import { startProxy } from './support/proxy.mjs'
import { sharedServer, startServer } from './support/server.mjs'

const server = await sharedServer()
// An attempt that isn't repeated may meet a stalled machine.
const patient = { responseTimeoutMs: PATIENCE_MS }
const client = new Client(server.url, patient)
const rival = new Client(server.url, patient)
after(() => Promise.all([client.close(), rival.close()]))

test('a lock does no I/O and is shared', async (t) => {
  const lock = client.lock(t.name, { ttlMs: 5_000 })
  assert.ok(lock instanceof Lock)
  assert.equal(lock.name, t.name)
  assert.equal(await server.command('EXISTS', t.name), 0)
  const fences = await Promise.all([1, 2, 3].map(async () => {
    const held = await lock.acquire()
    await held.release()
    return held.fence
  }))
  assert.equal(new Set(fences).size, 3)
})

test('acquire waits, at most waitMs', async (t) => {
  const held = await rival.lock(t.name).acquire()
  const { tookMs } = await timed(() => assert.rejects(client.lock(t.name, { waitMs: 200 }).acquire(), (error) => {
    assert.ok(error instanceof AcquireTimeoutError)
    assert.equal(error.holder, held.owner)
    return error.remainingMs > 5_000
  }))
  assert.ok(tookMs >= 195 && tookMs < 200 + LOAD_MS, `took ${tookMs} ms`)
  const waiting = client.lock(t.name, { waitMs: Infinity }).acquire()
  await held.release()
  const mine = await waiting
  assert.ok(mine.fence > held.fence)
  await mine.release()
})

test('inspect shows the holder, or null', async (t) => {
  const lock = client.lock(t.name)
  assert.equal(await lock.inspect(), null)
  const held = await lock.acquire()
  assert.equal((await rival.lock(t.name).inspect()).fence, null)
  await held.extend() // from here on its value shows the fence
  const info = await rival.lock(t.name).inspect()
  assert.deepEqual({ ...info, remainingMs: 0 }, { name: t.name, owner: held.owner, fence: held.fence, holderCount: 1, holders: [held.owner], available: null, waiters: 0, queue: [], remainingMs: 0, fields: info.fields })
  assert.equal(info.fields.pid, process.pid)
  assert.match(held.owner, new RegExp(`host=${info.fields.host} .* at=${info.fields.at.toISOString()} id=${info.fields.id}$`))
  assert.ok(info.remainingMs > 9_000 && info.remainingMs <= 10_000)
  await held.release()
})

test('inspect shows a foreign holder without expiry', async (t) => {
  await server.command('SET', t.name, 'redis-py')
  assert.deepEqual(await client.lock(t.name).inspect(), { name: t.name, owner: 'redis-py', fields: null, remainingMs: Infinity, fence: null, holderCount: 1, holders: ['redis-py'], available: null, waiters: 0, queue: [] })
})

test('withLock gives what the body gives, and the lock back', async (t) => {
  const value = await client.withLock(t.name, { ttlMs: 5_000, waitMs: 5_000 }, async (held) => {
    assert.equal(await server.holder(t.name), held.owner)
    return 'done'
  })
  assert.equal(value, 'done')
  assert.equal(await server.command('EXISTS', t.name), 0)
  assert.equal(await client.withLock(t.name, () => 'plain'), 'plain')
})

test('a body that asks for its own lock is told by the timeout who has it, unless it does not wait for the answer', async (t) => {
  await client.withLock(t.name, async (held) => {
    await assert.rejects(client.withLock(t.name, { waitMs: 50 }, () => assert.fail('ran')), { code: 'ACQUIRE_TIMEOUT', holder: held.owner })
  })
  let later
  await client.withLock(t.name, () => void (later = client.withLock(t.name, () => 'after the first')))
  assert.equal(await later, 'after the first')
})

test('a body that awaits its own lock without end is told of, by the process where nobody listens', async (t) => {
  const [silent, heard] = [new Client(server.url, patient), new Client(server.url, patient)]
  t.after(() => Promise.all([silent.close(), heard.close()]))
  const [warnings, events] = [[], []]
  const note = (warning) => warnings.push(warning)
  process.on('warning', note)
  t.after(() => process.off('warning', note))
  heard.on('warning', (event) => events.push(event))
  const inside = async (own, name) => {
    const leave = new AbortController()
    await own.withLock(name, async (held) => {
      const nested = ['one', 'two'].map(() => own.withLock(name, { signal: leave.signal }, () => assert.fail('ran')))
      const settled = Promise.allSettled(nested)
      const told = () => events.concat(warnings).find(({ message }) => message.includes(name))
      await until(told, PATIENCE_MS)
      // Once for a hold, not for each that waits for it.
      await sleep(300)
      assert.ok(held.isValid())
      leave.abort()
      await settled
    })
  }
  await Promise.all([inside(silent, `${t.name}: silent`), inside(heard, `${t.name}: heard`)])
  assert.deepEqual(warnings.map(({ name, code }) => [name, code]), [['LocktenderWarning', 'LOCKTENDER_DEADLOCK']])
  assert.deepEqual(events.map(({ lockName }) => lockName), [`${t.name}: heard`])
  assert.match(warnings[0].message, /: silent" has been held for \d+\.\d s by this same client, .*pass the hold down instead$/)
})

test('tryWithLock tells whether it ran', async (t) => {
  assert.deepEqual(await client.tryWithLock(t.name, async () => undefined), { ran: true, result: undefined })
  const held = await rival.lock(t.name).acquire()
  assert.deepEqual(await client.tryWithLock(t.name, { ttlMs: 5_000 }, () => assert.fail('ran')), { ran: false })
  await held.release()
})

test('f26: every way out of a body gives the lock back', async (t) => {
  const wrong = new Error('of the body')
  const ways = [
    () => { throw wrong },
    async () => { throw wrong },
    () => ({ then: (_, reject) => reject(wrong) }),
  ]
  for (const body of ways) {
    await assert.rejects(client.withLock(t.name, body), (error) => error === wrong && !('lockError' in error))
    await assert.rejects(client.tryWithLock(t.name, body), (error) => error === wrong)
    assert.equal(await server.command('EXISTS', t.name), 0)
  }
})

test('f26: whatever a body throws comes out', async (t) => {
  for (const thrown of [undefined, null, 'text', 7, Object.freeze(new Error('frozen'))]) {
    const caught = await client.withLock(t.name, { ttlMs: 300, maxHoldMs: 40 }, async () => {
      await sleep(50)
      throw thrown
    }).then(() => assert.fail(), (error) => error)
    assert.equal(caught, thrown)
  }
})

test('f26: a release that stays unknown is no error of a body', async (t) => {
  const own = await startServer(t)
  const cut = new Client(own.url, { responseTimeoutMs: 500 })
  assert.equal(await cut.withLock(t.name, { ttlMs: 60_000 }, async () => {
    await own.kill()
    return 'done'
  }), 'done')
  await assert.rejects(cut.lock(t.name, { waitMs: 0 }).acquire(), UnavailableError)
  await cut.close()
})

test('a body that the loss itself cancelled ends with the loss', async (t) => {
  const bodies = [
    ({ signal }) => sleep(60_000, null, { signal }), // an AbortError, the loss its cause
    ({ signal }) => new Promise((_, reject) => {
      const waits = setInterval(() => {}, 1_000) // a hold keeps no process alive
      signal.addEventListener('abort', () => {
        clearInterval(waits)
        reject(signal.reason)
      })
    }),
  ]
  for (const body of bodies) {
    await assert.rejects(client.withLock(t.name, { ttlMs: 3_000, maxHoldMs: 1_500 }, body), (error) => {
      assert.ok(error instanceof LockLostError, String(error))
      return error.reason === 'max_hold' && !('result' in error) && !('lockError' in error)
    })
    await until(async () => !(await server.command('EXISTS', t.name)), 1_000)
  }
})

// What a client waits for, how patient it is with a server that is gone, and what it then takes: the wait, and one response timeout.
const gone = [
  { waitMs: Infinity, unavailableAfterMs: 400, longestMs: 400 },
  { waitMs: 200, unavailableAfterMs: PATIENCE_MS, longestMs: 200 },
  { waitMs: 0, unavailableAfterMs: PATIENCE_MS, longestMs: 0 },
]

test('f18: an unreachable server is an error within the wait and one response timeout', async (t) => {
  for (const { waitMs, unavailableAfterMs, longestMs } of gone) {
    const none = new Client(new ScriptedServer('always any: fail refused'), { unavailableAfterMs, responseTimeoutMs: 100 })
    const { tookMs } = await timed(() => assert.rejects(none.lock(t.name, { waitMs }).acquire(), UnavailableError))
    assert.ok(tookMs < longestMs + 100 + LOAD_MS, `took ${tookMs} ms for ${waitMs}`)
  }
})

test('f18: a silent server is an error in time, and leaves nothing behind', async (t) => {
  const proxy = await startProxy(t, server)
  const timeouts = { responseTimeoutMs: 200, connectTimeoutMs: 200 }
  const clients = []
  for (const connected of [true, false]) {
    await proxy.restore()
    const unanswered = gone.map(({ unavailableAfterMs }) => new Client(proxy.url, { ...timeouts, unavailableAfterMs }))
    if (connected) await Promise.all(unanswered.map((each) => each.checkServers()))
    await proxy.blackHole()
    for (const [at, { waitMs, longestMs }] of gone.entries()) {
      const { tookMs } = await timed(() => assert.rejects(unanswered[at].lock(t.name, { waitMs }).acquire(), UnavailableError))
      assert.ok(tookMs < longestMs + 200 + LOAD_MS, `took ${tookMs} ms for ${waitMs}`)
    }
    await assert.rejects(unanswered[0].lock(t.name).tryAcquire(), UnavailableError)
    await assert.rejects(unanswered[0].lock(t.name).inspect(), UnavailableError)
    clients.push(...unanswered)
  }
  await proxy.restore()
  await until(async () => !(await server.command('EXISTS', t.name)), 1_000)
  assert.equal(await clients[1].withLock(t.name, () => 'again'), 'again')
  await Promise.all(clients.map((each) => each.close()))
})

test('f18: a host that does not exist is an error in time', async (t) => {
  const nowhere = new Client('redis://nowhere.invalid', { unavailableAfterMs: 300 })
  const { tookMs } = await timed(() => assert.rejects(nowhere.lock(t.name).acquire(), UnavailableError))
  assert.ok(tookMs < 300 + 1_000 + LOAD_MS, `took ${tookMs} ms`)
  await nowhere.close()
})
