// A peer that uses npm redlock; README.md lists its commands.

import { createInterface } from 'node:readline'

import { Redis } from 'ioredis'
import Redlock, { ExecutionError } from 'redlock'

const redis = new Redis(process.argv[2])
const redlock = new Redlock([redis], { retryCount: 0 })
let lock

/** What redlock promises, or `otherwise` where it says that the lock is another's. */
async function orIfRefused(promise, otherwise) {
  try {
    return await promise
  } catch (error) {
    if (error instanceof ExecutionError) return otherwise
    throw error
  }
}

const answers = {
  async try({ name, ttl_ms: ttlMs }) {
    lock = await orIfRefused(redlock.acquire([name], ttlMs), null)
    return { owner: lock && lock.value }
  },
  async release() {
    return { released: Boolean(await orIfRefused(lock.release(), false)) }
  },
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line)
  console.log(JSON.stringify(await answers[asked.do](asked)))
}
redis.disconnect()
