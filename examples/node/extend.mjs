// A lock that the work itself extends, without renewal in the background. LOCKTENDER_URL=redis://localhost node extend.mjs

import { lock } from 'locktender'

// A short ttl, extended after each step of the work: work that hangs loses its lock.
const hold = await lock('import', { ttlMs: 2_000, renew: false }).acquire()
for (const batch of 'abc') {
  console.log(`batch ${batch}: ${(hold.remainingMs() / 1_000).toFixed(1)} s remain`)
  await hold.extend() // at least the lock's own ttl remains
}
await hold.extend({ ttlMs: 30_000 }) // at least 30 s remain
await hold.extend({ byMs: 30_000 }) // what remains and 30 s more
console.log(`the last step has ${(hold.remainingMs() / 1_000).toFixed(0)} s`)
console.log((await hold.release()).outcome)
