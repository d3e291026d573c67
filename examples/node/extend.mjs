// A lock that the work itself extends, without renewal in the background. LOCKTENDER_URL=redis://localhost node extend.mjs

import { lock } from 'locktender'

// A short ttl, extended after each step of the work: work that hangs loses its lock.
const held = await lock('import', { ttlMs: 2_000, renew: false }).acquire()
for (const batch of 'abc') {
  console.log(`batch ${batch}: ${(held.remainingMs() / 1_000).toFixed(1)} s remain`)
  await held.extend() // at least the lock's own ttl remains
}
await held.extend(30_000) // at least 30 s remain
await held.extendBy(30_000) // what remains and 30 s more
console.log(`the last step has ${(held.remainingMs() / 1_000).toFixed(0)} s`)
console.log((await held.release()).outcome)
