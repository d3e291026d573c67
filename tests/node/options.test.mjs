// Options: how they are read, and the answers to likely mistakes in a constructor's arguments.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { runInNewContext } from 'node:vm'
import test from 'node:test'

import { Redis, Cluster } from 'ioredis'
import { Client, InvalidArgumentError, NotHeldError, configure } from 'locktender'
import { createClient } from 'redis'

import { run } from './support/script.mjs'
import { sharedServer } from './support/server.mjs'

const client = new Client(`memory://${randomUUID()}`)

const refused = (pattern) => (error) => {
  assert.ok(error instanceof InvalidArgumentError, String(error))
  assert.match(error.message, pattern)
  assert.doesNotMatch(error.message, /geheim/)
  return true
}

class Settings {
  #ttlMs = 60_000
  get ttlMs() {
    return this.#ttlMs
  }
  toSeconds() {
    return this.#ttlMs / 1_000
  }
}

const given = {
  'an own property': { ttlMs: 60_000 },
  'a prototype': Object.create({ ttlMs: 60_000 }),
  'a prototype of a prototype without one': Object.create(Object.create(Object.assign(Object.create(null), { ttlMs: 60_000 }))),
  'an accessor': { get ttlMs() { return 60_000 } },
  'a class': new Settings(),
  'a class that extends it': new (class extends Settings { waitMs = 5 })(),
  'an own property that is not enumerable': Object.defineProperty({}, 'ttlMs', { value: 60_000 }),
  'another realm': runInNewContext('({ ttlMs: 60_000 })'),
  'a proxy': new Proxy({}, { get: (_, key) => (key === 'ttlMs' ? 60_000 : undefined) }),
}
for (const [where, options] of Object.entries(given)) {
  test(`options are read from ${where}`, async (t) => {
    const locks = [client.lock(t.name, options), new Client(`memory://${randomUUID()}`, options).lock(t.name)]
    for (const lock of locks) {
      const held = await lock.acquire()
      assert.ok(held.remainingMs() > 50_000, `${held.remainingMs()} ms`)
      await held.release()
    }
    assert.ok(await client.withLock(t.name, options, (held) => held.remainingMs()) > 50_000)
  })
}

test('a signal is read from a prototype too', async (t) => {
  const options = Object.create({ signal: AbortSignal.abort(new Error('given up')) })
  await assert.rejects(client.lock(t.name).acquire(options), /given up/)
  await assert.rejects(client.withLock(t.name, options, () => assert.fail('ran')), /given up/)
})

test('an unknown name is refused wherever it comes from', () => {
  const unknown = [Object.create({ ttls: 5 }), new (class { get ttls() { return 5 } })(), { get ttls() { return 5 } }, runInNewContext('({ ttls: 5 })'),
    Object.create(Object.assign(Object.create(null), { ttls: 5 }))]
  for (const options of unknown) {
    assert.throws(() => client.lock('a', options), refused(/^ttls: /))
    assert.throws(() => new Client('memory://a', options), refused(/^ttls: /))
  }
})

test('an accessor is asked once, and what it throws comes out', async (t) => {
  let asked = 0
  const held = await client.lock(t.name, { get ttlMs() { return ++asked === 1 ? 60_000 : 'something else' } }).acquire()
  assert.ok(held.remainingMs() > 50_000)
  await held.release()
  const thrown = new Error('of the accessor')
  const throws = { get waitMs() { throw thrown } }
  assert.throws(() => client.lock(t.name, throws), (error) => error === thrown)
  await assert.rejects(client.withLock(t.name, throws, () => assert.fail('ran')), (error) => error === thrown)
})

test('what an application added to Object.prototype is no option, no address and no field of an event', async (t) => {
  const program = `
    import { Points } from 'locktender/influxdb'
    Object.prototype.flatten = () => []
    Object.defineProperty(Object.prototype, 'shout', { get: () => 'loud', configurable: true })
    new Client('redis+cluster://127.0.0.1:1', { addressMap: { 'a:1': 'b:2' } })
    const client = new Client('memory://a', { ttlMs: 5_000 })
    const points = new Points((lines) => say(lines.match(/event=\\w+/g)))
    client.on('event', (event) => points.add({ ...event, extra: [] }))
    say(await client.withLock(name, { waitMs: 5 }, (held) => held.isValid()))
    await points.flush()`
  const [valid, events] = await run(t, program, await sharedServer(), t.name)
  assert.deepEqual([valid, events.split(',').slice(0, 2)], ['true', ['event=round', 'event=acquired']])
})

test('a signal given as the options is told where it belongs', async (t) => {
  await assert.rejects(client.lock(t.name).acquire(AbortSignal.timeout(1_000)), refused(/^options: .*\{ signal \}/))
})

test('options come first where the environment names the servers', async (t) => {
  const program = `
    process.env.LOCKTENDER_URL = url
    for (const client of [new Client({ prefix: 'p:' }), configure({ prefix: 'p:' })]) {
      const held = await client.lock(name).acquire()
      say(String(await new Client(url, { prefix: 'p:' }).lock(name).tryAcquire()), (await held.release()).outcome)
      await client.close()
    }`
  assert.deepEqual(await run(t, program, await sharedServer(), t.name), ['null released', 'null released'])
})

test('an unknown name among options that come first is named', () => {
  assert.throws(() => new Client({ prefixx: 'p:' }), refused(/^prefixx: /))
  assert.throws(() => configure({ prefixx: 'p:' }), refused(/^prefixx: /))
  assert.throws(() => new Client({ prefix: 'p:' }, { ttlMs: 5 }), refused(/^url: .*options/))
})

test('a URL object is a URL', async (t) => {
  const url = new URL(`memory://${randomUUID()}`)
  const [one, other] = [new Client(url), new Client([url.href])]
  const held = await one.lock(t.name).acquire()
  assert.equal(await other.lock(t.name).tryAcquire(), null)
  await held.release()
})

test('another library\'s client is told what to do with it', (t) => {
  const options = { lazyConnect: true, password: 'geheim' }
  const ioredis = new Redis(options)
  const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true, redisOptions: { password: 'geheim' } })
  t.after(() => [ioredis, cluster].forEach((each) => each.disconnect()))
  for (const redis of [ioredis, cluster]) {
    for (const make of [() => new Client(redis), () => new Client([redis]), () => new Client(redis, { ttlMs: 5_000 }), () => configure(redis)]) {
      assert.throws(make, refused(/^url: .*Client\.fromIoredis\(redis\)/))
    }
  }
  const redis = createClient({ url: 'redis://:geheim@127.0.0.1:1' })
  assert.throws(() => new Client(redis), refused(/^url: .*new Client\('redis:\/\/localhost'\).*node-redis/))
  assert.throws(() => Client.fromIoredis(redis), refused(/^redis: .*new Client\(url\).*node-redis/))
})

test('release and extend of a lock say where they are', (t) => {
  for (const method of ['release', 'extend']) {
    assert.throws(() => client.lock(t.name)[method](), (error) => {
      assert.ok(error instanceof NotHeldError)
      assert.deepEqual([error.code, error.lockName], ['NOT_HELD', t.name])
      assert.ok(error.message.includes(`${method}() is a method of what acquire() returned`), error.message)
      return true
    })
  }
})

// What a user of another library writes first, and a part of what is said.
const peers = {
  redlock: { retryCount: /waitMs/, retryDelay: /waitMs/, retryJitter: /waitMs/, driftFactor: /leave it out/, automaticExtensionThreshold: /renew/ },
  'redis-semaphore': { lockTimeout: /ttlMs/, acquireTimeout: /waitMs/, refreshInterval: /renew/, acquireAttemptsLimit: /waitMs 0/, onLockLost: /hold\.signal/ },
  ioredis: { keyPrefix: /prefix/, connectTimeoutMS: /connectTimeoutMs/, host: /first argument/, password: /first argument/, url: /first argument/ },
  'a guess': { ttl: /did you mean ttlMs\? Times are milliseconds/, wait: /did you mean waitMs/, timeout: /ttlMs.*waitMs/, maxHold: /maxHoldMs/, watiMs: /did you mean waitMs/ },
}
for (const [library, words] of Object.entries(peers)) {
  test(`an option that is ${library === 'a guess' ? library : `known from ${library}`} is answered with what there is here`, async () => {
    for (const [word, said] of Object.entries(words)) {
      const whole = new RegExp(`^${word}: .*${said.source}`)
      assert.throws(() => new Client('memory://a', { [word]: 5 }), refused(whole))
      assert.throws(() => client.lock('a', { [word]: 5 }), refused(word.startsWith('connect') ? /option of the client/ : whole))
      if (word in { host: 1, password: 1, url: 1 }) assert.throws(() => new Client({ [word]: 'redis://:geheim@localhost' }), refused(whole))
    }
  })
}

test('an option of another call is sent there', async () => {
  assert.throws(() => client.lock('a', { prefix: 'p:' }), refused(/^prefix: prefix is an option of the client/))
  assert.throws(() => client.lock('a', { signal: 5 }), refused(/lock\.acquire\(\{ signal \}\)/))
  await assert.rejects(client.lock('a').acquire({ ttlMs: 5 }), refused(/^ttlMs: ttlMs is an option of the lock/))
})
