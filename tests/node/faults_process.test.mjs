// Faults of a process: a blocked event loop, a stop, a kill, garbage, and every way a process ends. The numbers are those of tests/faults/README.md.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'

import { Client } from 'locktender'

import { LOAD_MS, PATIENCE_MS, timed, until } from './support/observe.mjs'
import { run, start } from './support/script.mjs'
import { sharedServer, startServer } from './support/server.mjs'

const server = await sharedServer()
// An attempt that isn't repeated may meet a stalled machine.
const client = new Client(server.url, { responseTimeoutMs: PATIENCE_MS })
after(() => client.close())

const exists = (name) => server.command('EXISTS', name)
const GC = { flags: ['--expose-gc'] }

test('f01: an event loop that is blocked for five ttls keeps its lock', async (t) => {
  const program = `
    const held = await new Client(url).lock(name, { ttlMs: 2_000 }).acquire()
    const { signal } = held
    say('held')
    block(10_000)
    say(held.isValid(), held.remainingMs() > 0)
    await sleep(50)
    say(held.isValid(), signal.aborted, (await held.release()).outcome, held.fence)`
  const script = start(t, program, server, t.name)
  assert.equal(await script.line(), 'held')
  const rival = await client.lock(t.name).acquire() // tries all the while
  const said = await script.ending()
  assert.match(said.join(), /^true true,true false released \d+$/)
  assert.ok(rival.fence > Number(said.at(-1).split(' ').at(-1)))
  await rival.release()
})

test('f02: a stopped process knows that it lost, before any I/O, and is told once', async (t) => {
  const program = `
    const client = new Client(url)
    let losses = 0
    client.on('lost', () => losses++)
    const held = await client.lock(name, { ttlMs: 400 }).acquire()
    held.signal.addEventListener('abort', () => losses += 10)
    say('held')
    await heard()
    say(held.isValid(), held.remainingMs())
    const { outcome, nextOwner, overrunMs } = await held.release()
    say(outcome, overrunMs > 0)
    say(nextOwner)
    await sleep(50)
    say(losses, held.signal.reason.code)
    await client.close()`
  const script = start(t, program, server, t.name)
  assert.equal(await script.line(), 'held')
  script.signal('SIGSTOP')
  const mine = await client.lock(t.name, { ttlMs: 30_000 }).acquire() // as soon as the key has expired
  script.tell()
  script.signal('SIGCONT')
  assert.deepEqual(await script.ending(), ['false 0', 'taken true', mine.owner, '11 LOCK_LOST'])
  assert.equal((await mine.release()).outcome, 'released')
})

test('f07: a hold that is garbage is no longer renewed, with a warning', async (t) => {
  const program = `
    const client = new Client(url)
    const warned = new Promise((resolve) => client.on('dropped', resolve))
    await (async () => { const held = await client.lock(name, { ttlMs: 2_500 }).acquire(); if (process.argv[3]) held.signal })()
    for (let at = 0; at < 5; at++) { gc(); await sleep(5) }
    const { message, lockName } = await warned
    say(/without release/.test(message), lockName === name, (await client.lock(name).inspect()) !== null)
    await (await client.lock(name).acquire()).release()
    await client.close()`
  for (const more of [[], ['signal']]) {
    assert.deepEqual(await run(t, program, server, t.name + more, { ...GC, more }), ['true true true'])
  }
})

test('f07: a body keeps its lock alive, and so does a signal in use', async (t) => {
  const program = `
    const client = new Client(url, { responseTimeoutMs: 60_000 })
    client.on('dropped', ({ message }) => say(message))
    const tried = async (lock) => { const end = performance.now() + 3_500; while (performance.now() < end) { gc(); await sleep(20) } return String(await client.lock(lock).tryAcquire()) }
    say(await client.withLock(name, { ttlMs: 2_500 }, () => tried(name)))
    const { signal } = await client.lock(name, { ttlMs: 2_500 }).acquire()
    say(await tried(name), signal.aborted)
    await client.close()`
  assert.deepEqual(await run(t, program, server, t.name, GC), ['null', 'null false'])
})

test('f07: thousands of holds dropped while held crash nothing', async (t) => {
  const program = `
    const client = new Client(url)
    for (let at = 0; at < 10; at++) {
      await Promise.all(Array.from({ length: ${process.env.LOCKTENDER_LONG ? 1_000 : 200} }, (_, each) => client.lock(name + at + '-' + each, { ttlMs: 1_000 }).acquire()))
      gc()
    }
    say(await client.withLock(name, () => 'alive'))`
  const memory = { url: `memory://${process.pid}-garbage` }
  assert.deepEqual(await run(t, program, memory, t.name, GC), ['alive'])
})

test('f08: a process that is killed frees its lock within one ttl', async (t) => {
  const script = start(t, `await new Client(url).lock(name, { ttlMs: 1_000 }).acquire().then((held) => { say('held'); setInterval(() => held, 100) })`, server, t.name)
  assert.equal(await script.line(), 'held')
  script.signal('SIGKILL')
  const { tookMs, value } = await timed(() => client.lock(t.name).acquire())
  assert.ok(tookMs < 1_000 + LOAD_MS, `took ${tookMs} ms`)
  await value.release()
  await script.ending('SIGKILL')
})

test('a process ends by itself while a lock is held and renewed, and gives it back', async (t) => {
  const program = `
    const client = new Client(url)
    const held = await client.lock(name, { ttlMs: 600_000 }).acquire()
    held.signal.addEventListener('abort', () => say('aborted'))
    await client.withLock(name + ' 2', () => undefined)
    await lock(name).inspect().catch((error) => say(error.code))
    process.on('exit', () => say('exit'))
    say('ends')`
  const script = start(t, program, server, t.name)
  assert.equal(await script.line(), 'INVALID_ARGUMENT')
  const { tookMs, value } = await timed(() => script.ending())
  assert.deepEqual(value, ['ends', 'exit'])
  assert.ok(tookMs < 2_000, `took ${tookMs} ms`)
  assert.equal(await exists(t.name), 0)
})

test('an acquire that waits keeps the process alive, and nothing else does', async (t) => {
  const held = await client.lock(t.name).acquire()
  const script = start(t, `const client = new Client(url, { ttlMs: 600_000 }); say('waits'); say((await client.lock(name).acquire()).isValid())`, server, t.name)
  assert.equal(await script.line(), 'waits')
  await held.release()
  assert.deepEqual(await script.ending(), ['true'])
  await until(async () => !(await exists(t.name)), 500)
})

for (const [way, expected] of [['process.exit(3)', 3], ['setImmediate(() => process.exit(0))', 0],
  ['held.release(); process.exit(0)', 0]]) {
  test(`${way} amid acquires, bodies and holds gives all of it back`, async (t) => {
    const program = `
      const client = new Client(url, { ttlMs: 600_000 })
      const held = await client.lock(name + ' held').acquire()
      client.withLock(name + ' body', () => new Promise(() => {})).catch((error) => say(error))
      client.lock(name + ' held').acquire().catch((error) => say(error))
      for (let at = 0; at < 30; at++) client.lock(name + ' ' + at).acquire()
      ${way}`
    assert.deepEqual(await start(t, program, server, t.name).ending(expected), [])
    const keys = [' held', ' body', ...Array.from({ length: 30 }, (_, at) => ` ${at}`)].map((end) => t.name + end)
    assert.equal(await server.command('EXISTS', ...keys), 0)
  })
}

test('an exit is bounded while the server is silent', async (t) => {
  const own = await startServer(t)
  const program = `
    const patient = () => new Client(url, { responseTimeoutMs: 60_000 })
    const held = await Promise.all([1, 2, 3].map((at) => patient().lock(name + at).acquire()))
    process.kill(Number(process.argv[3]), 'SIGSTOP')
    say('ends')`
  const script = start(t, program, own, t.name, { more: [own.pid] })
  assert.equal(await script.line(), 'ends')
  const { tookMs } = await timed(() => script.ending())
  own.resume()
  assert.ok(tookMs < 4_000, `took ${tookMs} ms`)
})

test('f28: SIGTERM with a handler that closes gives everything back, and the process ends', async (t) => {
  const program = `
    const client = new Client(url, { ttlMs: 600_000 })
    process.once('SIGTERM', async () => { await client.close(); say('closed') })
    const held = await client.lock(name).acquire()
    client.lock(name).acquire().catch((error) => say(error.code))
    client.withLock(name + ' body', ({ signal }) => sleep(600_000, null, { signal })).catch((error) => say(error.code, error.reason))
    say('up')`
  const script = start(t, program, server, t.name)
  assert.equal(await script.line(), 'up')
  await until(() => exists(`${t.name} body`))
  script.signal('SIGTERM')
  const { tookMs, value } = await timed(() => script.ending())
  assert.deepEqual(value.sort(), ['CLOSED', 'LOCK_LOST closed', 'closed'])
  assert.ok(tookMs < 2_000, `took ${tookMs} ms`)
  for (const name of [t.name, `${t.name} body`]) assert.equal(await exists(name), 0)
})

test('f09: a server killed under holds, waits and bodies leaves no unhandled rejection', async (t) => {
  const own = await startServer(t)
  const program = `
    const client = new Client(url, { ttlMs: 2_500, responseTimeoutMs: 500, unavailableAfterMs: 1_500 })
    const held = await client.lock(name).acquire()
    held.signal // nobody listens
    const kept = await client.lock(name + ' 2').acquire()
    const ends = [
      client.lock(name).acquire(),
      client.withLock(name + ' body', ({ signal }) => sleep(600_000, null, { signal })),
    ].map((work) => work.catch((error) => error.code))
    say('held')
    say(...await Promise.all(ends), held.isValid(), kept.isValid(), held.signal.reason.code)
    await kept.release().catch((error) => say(error.code))
    await client.close()`
  const script = start(t, program, own, t.name)
  assert.equal(await script.line(), 'held')
  await until(() => own.command('EXISTS', `${t.name} body`))
  await own.kill()
  const said = await script.ending()
  assert.equal(said[0], 'UNAVAILABLE LOCK_LOST false false LOCK_LOST')
})
