// A resource that refuses the write of a holder that was paused for too long. LOCKTENDER_URL=redis://localhost node fencing.mjs

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'

import { lock } from 'locktender'

/** What the lock protects. It remembers the largest fence it has seen, and refuses smaller ones. */
class Account {
  balance = 0
  fence = 0

  write(balance, fence) {
    if (fence < this.fence) return `fence ${fence} came after ${this.fence}: refused`
    this.balance = balance
    this.fence = fence
    return 'written'
  }
}

const account = new Account()

// Without renewal the lock expires, as the lock of a paused process does.
const slow = await lock('account:7', { ttlMs: 200, renew: false }).acquire()
const { signal } = slow
await sleep(300)
console.log(`the slow holder was lost: ${signal.reason.reason}`)

const quick = await lock('account:7').acquire()
console.log(`the quick holder writes: ${account.write(200, quick.fence)}`)
console.log(`the slow holder writes: ${account.write(100, slow.fence)}`)
assert.equal(account.balance, 200)

console.log(`the slow holder's release finds the lock ${(await slow.release()).outcome}`)
await quick.release()
