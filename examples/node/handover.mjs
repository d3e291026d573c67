// A held lock that moves to another process, as from a web request to a background job.
// LOCKTENDER_URL=redis://localhost node handover.mjs

import { Client, lock } from 'locktender'

const request = await lock('report:2026').acquire()
console.log(`the request holds it with fence ${request.fence}`)
const ticket = await request.handOver() // a string: put it into the job's arguments

// In another process, with another client. The ticket works once, and until the lock's ttl has passed.
const client = new Client()
const job = await client.adopt(ticket)
console.log(`the job holds it with fence ${job.fence}`)
console.log((await job.release()).outcome)
await client.close()
