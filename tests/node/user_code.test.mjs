// Code of the application that the library calls: its misbehaviour does not affect the locks of the process.

import assert from 'node:assert/strict'
import test from 'node:test'

import { run, start } from './support/script.mjs'
import { sharedServer } from './support/server.mjs'

const server = await sharedServer()

/** Where the library calls code of the application: each of them calls `code` once, in a program with `client` and `own`, a name. */
const PLACES = {
  'a listener of one kind': `client.once('acquired', code); await client.withLock(own, () => {})`,
  'a listener of all kinds': `client.once('event', code); await client.withLock(own, () => {})`,
  'a subscriber of the channel': `
    const hear = () => { diagnostics.unsubscribe('locktender', hear); return code() }
    diagnostics.subscribe('locktender', hear)
    await client.withLock(own, () => {})`,
  'a subscriber of the start of a trace': `
    const channel = diagnostics.tracingChannel('locktender:acquire').start
    const hear = () => { channel.unsubscribe(hear); return code() }
    channel.subscribe(hear)
    await client.withLock(own, () => {})`,
  'a subscriber of the end of a trace': `
    const channel = diagnostics.tracingChannel('locktender:release').asyncEnd
    const hear = () => { channel.unsubscribe(hear); return code() }
    channel.subscribe(hear)
    await client.withLock(own, () => {})`,
  "a listener of a hold's signal": `
    // On a busy machine the hold may be over before anybody listens.
    while (calls === 0) {
      const held = await client.lock(own, { ttlMs: 2_500, maxHoldMs: 1_000 }).acquire()
      held.signal.addEventListener('abort', code)
      await held.lost
    }`,
  'a body': `await client.withLock(own, code)`,
  'a body that is tried once': `await client.tryWithLock(own, code)`,
  'an accessor of an option': `client.lock(own, { get ttlMs() { code(); return 5_000 } })`,
  'a value that is shown': `
    const odd = { [inspect.custom]: code, toString: code, valueOf: code, get [Symbol.toStringTag]() { code(); return 'odd' } }
    try { client.lock(own, { ttlMs: odd }) } finally { code() }`,
  'a signal that is asked': `await client.lock(own).acquire({ signal: { get aborted() { code(); return false }, addEventListener() {}, removeEventListener() {} } })`,
  'a signal that is listened to': `await client.lock(own).acquire({ signal: { aborted: false, addEventListener: code, removeEventListener() {} } })`,
  'a signal that is left': `await (await client.lock(own).acquire({ signal: { aborted: false, addEventListener() {}, removeEventListener: code } })).release()`,
  "a signal's reason": `
    let told
    const signal = { aborted: false, get reason() { code(); return new Error('of the user') }, addEventListener: (_, listener) => (told = listener), removeEventListener() {} }
    const busy = await client.lock(own).acquire()
    const waiting = client.lock(own).acquire({ signal })
    setTimeout(() => told(), 50)
    await waiting.finally(() => busy.release())`,
  'the accessor then of a result': `await client.withLock(own, () => ({ get then() { code(); return undefined } }))`,
}

/** What the code does there. The event loop is blocked for longer than a ttl. */
const MISDEEDS = {
  'throws': `() => { throw new Error('of the user') }`,
  'rejects': `async () => { throw new Error('of the user') }`,
  'blocks the loop': `() => block(1_700)`,
  'locks again': `() => (finished = client.withLock(own + ' again', () => {}).then(() => client.lock(own).tryAcquire()))`,
  'closes the client': `() => client.close()`,
}

const HEAD = `
  import diagnostics from 'node:diagnostics_channel'
  import { inspect } from 'node:util'
  import { LockError } from 'locktender'
  const isTheirs = (error) => error instanceof Error && error.message === 'of the user'
  process.on('uncaughtException', (error) => isTheirs(error) || say('uncaught', error.stack))
  process.on('unhandledRejection', (error) => isTheirs(error) || say('unhandled', error.stack))
  const keeper = new Client(url)
  const kept = await keeper.lock(name, { ttlMs: 1_500 }).acquire()
  let renewals = 0
  keeper.on('renewed', () => renewals++)
  const own = name + ' own'`

/** Plays one place with a client of its own; then every promise to the other client of the process must still hold. */
const play = (place, misdeed) => `
  {
    const client = new Client(url, { ttlMs: 5_000 })
    let calls = 0
    let finished
    const misdeed = ${misdeed}
    const code = (...given) => (++calls === 1 ? misdeed(...given) : undefined)
    const work = async () => { ${PLACES[place]} }
    await work().catch((error) => isTheirs(error) || error instanceof LockError || say('wrong', error.stack))
    if (calls === 0) say('never called')
    await finished
    await client.close()
    const before = renewals
    while (renewals < before + 1) await sleep(10)
    kept.check()
    const short = await keeper.lock(own + ' short', { ttlMs: 2_500, maxHoldMs: 50 }).acquire()
    if ((await short.lost).reason !== 'max_hold' || !short.signal.aborted) say('not told of the loss')
    if (await new Client(url).lock(own).inspect()) say('left a key')
    say(${JSON.stringify(place)})
  }`

for (const [misdeed, code] of Object.entries(MISDEEDS)) {
  test(`every lock is kept, told and given back where code of the application ${misdeed}`, async (t) => {
    const places = Object.keys(PLACES)
    // A program has some seconds.
    const parts = [0, 1, 2, 3].map((part) => places.filter((_, at) => at % 4 === part))
    const said = await Promise.all(parts.map((part, at) => {
      const program = [HEAD, ...part.map((place) => play(place, code)), `say((await kept.release()).outcome)`].join('\n')
      return run(t, program, server, `${t.name} ${at}`)
    }))
    assert.deepEqual(said, parts.map((part) => [...part, 'released']))
  })
}

for (const place of Object.keys(PLACES)) {
  test(`a program that exits in ${place} gives its locks back`, async (t) => {
    const program = `${HEAD}
      const client = new Client(url)
      const calls = 0
      const code = () => process.exit(7)
      const work = async () => { ${PLACES[place]} }
      await work()
      say('went on')`
    assert.deepEqual(await start(t, program, server, t.name).ending(7), [])
    assert.equal(await server.command('EXISTS', t.name, `${t.name} own`), 0)
  })
}
