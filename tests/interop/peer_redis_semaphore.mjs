// A peer that uses npm redis-semaphore, whose keys begin with `mutex:`; README.md lists its commands.

import { createInterface } from 'node:readline'

import { Redis } from 'ioredis'
import { Mutex } from 'redis-semaphore'

const redis = new Redis(process.argv[2])
let mutex
let key

const answers = {
  async try({ name, ttl_ms: ttlMs }) {
    key = name
    mutex = new Mutex(redis, name.replace(/^mutex:/, ''), { lockTimeout: ttlMs, refreshInterval: 0, acquireAttemptsLimit: 1 })
    return { owner: (await mutex.tryAcquire()) ? mutex.identifier : null }
  },
  async release() {
    // It doesn't say whether there was something to release.
    const released = (await redis.get(key)) === mutex.identifier
    await mutex.release()
    return { released }
  },
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line)
  console.log(JSON.stringify(await answers[asked.do](asked)))
}
redis.disconnect()
