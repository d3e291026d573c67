// A lock that is held around some work. LOCKTENDER_URL=redis://localhost node hello.mjs

import { lock, withLock } from 'locktender'

// Renewed in the background until the body ends; AcquireTimeoutError after 5 s.
const total = await withLock('orders:42', { ttlMs: 10_000, waitMs: 5_000 }, async (hold) => {
  console.log(`${hold.name} is held with fence ${hold.fence}`)
  console.log(`somebody else gets ${await lock('orders:42').tryAcquire()}`)
  return 42
})
console.log(`done: ${total}`)
