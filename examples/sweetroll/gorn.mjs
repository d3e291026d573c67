// Gorn fights for the sweetroll in Node: gorn.mjs URL FILE TTL END

import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

import { AcquireTimeoutError, Client, LockLostError } from 'locktender'

const NAME = 'Gorn'

/** The wall clock in seconds, finer than Date's. */
function time() {
  return (performance.timeOrigin + performance.now()) / 1e3
}

/** For the stage, which shows it. */
function tell(event, details) {
  console.log(JSON.stringify({ event, ...details }))
}

/** Appends to the file that all share. Its readers refuse a line whose fence is smaller than one before it. */
function write(shared, held, event, since, checked, until) {
  const line = { fence: held.fence, who: NAME, event, since, checked, until, at: time() }
  appendFileSync(shared, JSON.stringify(line) + '\n')
}

/** What must happen while the lock is held. */
async function eat(held, shared, ttlMs, since) {
  const bites = 2 + Math.floor(Math.random() * 5)
  for (let bite = 0; bite < bites; bite++) {
    if (bite === 2) {
      await held.extend({ byMs: ttlMs / 2 })
      tell('extends')
    }
    const checked = time()
    const until = checked + held.remainingMs() / 1e3
    held.check()
    tell('bites', { checked })
    // The work. If this process is paused here for too long, the check above is outdated. Then only the fence in the line
    // below prevents damage.
    await sleep(100)
    write(shared, held, 'bites', since, checked, until)
  }
  const now = time()
  write(shared, held, 'leaves', since, now, now + held.remainingMs() / 1e3)
}

const [urls, shared, ttl, end] = process.argv.slice(2)
const ttlMs = Number(ttl) * 1e3
tell('enters')
// Two ttls: more than the remaining time of any hold here. A server that was killed does not vote for so long.
const client = new Client(urls, { app: NAME, ttlMs, maxTtlMs: 2 * ttlMs })
for (let left; (left = Number(end) - time()) > 0; ) {
  tell('waits')
  const began = time()
  try {
    await client.withLock('sweetroll', { ttlMs, waitMs: left * 1e3 }, async (held) => {
      tell('takes', { fence: held.fence, waited: Number((time() - began).toFixed(3)) })
      await eat(held, shared, ttlMs, time())
    })
    tell('leaves')
  } catch (error) {
    if (error instanceof AcquireTimeoutError) break
    if (!(error instanceof LockLostError)) throw error
    tell('loses', { why: error.message })
  }
  await sleep(Math.random() * 150)
}
tell('leaves')
await client.close()
