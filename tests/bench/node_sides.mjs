// The Node sides: `node node_sides.mjs <side> <urls> <seconds> <callers> [new]`; with `new` each pair has a new name.
// Everything is imported where it is used: `once` is measured from the start of its process to its end.
const PERMITS = 5
const [side, urls, seconds, callers, names] = process.argv.slice(2)

const sides = {
  locktender,
  'with-lock': withLock,
  redlock,
  'redlock-using': redlockUsing,
  'redlock-universal': redlockUniversal,
  ioredis,
  once,
  semaphore,
  'redis-semaphore': redisSemaphore,
}
await sides[side]()

async function locktender() {
  const { Client } = await import('locktender')
  const client = new Client(urls.split(','))
  const lock = remembered((name) => client.lock(name))
  await measure(async (name) => {
    const held = await lock(name).acquire()
    await held.release()
  })
  await client.close()
}

async function withLock() {
  const { Client } = await import('locktender')
  const client = new Client(urls.split(','))
  await measure((name) => client.withLock(name, async () => {}))
  await client.close()
}

async function redlock() {
  const { default: Redlock } = await import('redlock')
  const lock = new Redlock(await connections())
  await measure(async (name) => {
    const held = await lock.acquire([name], 10_000)
    await held.release()
  })
  process.exit()
}

async function redlockUsing() {
  const { default: Redlock } = await import('redlock')
  const lock = new Redlock(await connections())
  await measure((name) => lock.using([name], 10_000, async () => {}))
  process.exit()
}

async function redlockUniversal() {
  const { IoredisAdapter, createLock } = await import('redlock-universal')
  const [redis] = await connections()
  const adapter = new IoredisAdapter(redis)
  const lock = remembered((key) => createLock({ adapter, key, ttl: 10_000 }))
  await measure(async (name) => {
    const own = lock(name)
    const handle = await own.acquire()
    await own.release(handle)
  })
  process.exit()
}

/** Makes each caller's lock once, unless each pair has a new name. */
function remembered(make) {
  if (names === 'new') return make
  const made = new Map()
  return (name) => made.get(name) ?? made.set(name, make(name)).get(name)
}

/** What somebody writes by hand: a random value set, and compared before it is deleted. */
async function ioredis() {
  const { randomBytes } = await import('node:crypto')
  const [redis] = await connections()
  const remove = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
  const sha = await redis.script('LOAD', remove)
  await measure(async (name) => {
    const value = randomBytes(16).toString('hex')
    await redis.set(name, value, 'PX', 10_000, 'NX')
    await redis.evalsha(sha, 1, name, value)
  })
  process.exit()
}

/** All callers share one semaphore. */
async function semaphore() {
  const { Client } = await import('locktender')
  const client = new Client(urls.split(','))
  const renders = client.semaphore('bench:semaphore', { permits: PERMITS })
  await measure(async () => {
    const held = await renders.acquire()
    await held.release()
  })
  await client.close()
}

async function redisSemaphore() {
  const { Semaphore } = await import('redis-semaphore')
  const [redis] = await connections()
  // Its object is one caller's, and waits for 10 s.
  const free = []
  await measure(async () => {
    const renders = free.pop() ?? new Semaphore(redis, 'bench:semaphore', PERMITS)
    await renders.acquire()
    await renders.release()
    free.push(renders)
  })
  process.exit()
}

async function once() {
  const { Client } = await import('locktender')
  const held = await new Client(urls).lock('bench:once').acquire()
  await held.release()
}

async function connections() {
  const { default: Redis } = await import('ioredis')
  const clients = urls.split(',').map((url) => new Redis(url))
  // A client without a listener prints what it can't reach.
  for (const client of clients) client.on('error', () => {})
  return clients
}

async function measure(pair) {
  const meter = await import('./meter.mjs')
  let made = 0
  const named = names === 'new' ? (name) => pair(`${name}:${process.pid}:${(made += 1)}`) : pair
  await meter.measure(Number(seconds), Number(callers), named)
}
