// A holder in Node: it acquires a lock at every line `acquire` of its standard input, and releases it at every other line. It prints
// the times (ns of the monotonic clock): `node node_holder.mjs <locktender|redlock|redis-semaphore|simple-redis-mutex> <url>`.

import { createInterface } from 'node:readline'

const [side, url] = process.argv.slice(2)
const NAME = 'bench:line'

// Each gives a function that acquires, and gives one that releases.
const sides = {
  async locktender() {
    const { Client } = await import('locktender')
    const lock = new Client(url).lock(NAME)
    return async () => {
      const held = await lock.acquire()
      return () => held.release()
    }
  },

  async redlock() {
    const { default: Redlock } = await import('redlock')
    const lock = new Redlock([await ioredis()], { retryCount: -1 })
    return async () => {
      const held = await lock.acquire([NAME], 60_000)
      return () => held.release()
    }
  },

  async 'redis-semaphore'() {
    const { Mutex } = await import('redis-semaphore')
    const redis = await ioredis()
    return async () => {
      const mutex = new Mutex(redis, NAME, { acquireTimeout: 60_000, lockTimeout: 60_000 })
      await mutex.acquire()
      return () => mutex.release()
    }
  },

  async 'simple-redis-mutex'() {
    const { createClient } = await import('redis')
    const { lock } = await import('simple-redis-mutex')
    const redis = await createClient({ url }).connect()
    return () => lock(redis, NAME, { timeout: 60_000 })
  },
}

async function ioredis() {
  const { default: Redis } = await import('ioredis')
  return new Redis(url)
}

const acquire = await sides[side]()
let release
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'acquire') {
    release = await acquire()
    console.log(String(process.hrtime.bigint()))
  } else {
    const began = process.hrtime.bigint()
    await release()
    console.log(String(began))
  }
}
process.exit()
