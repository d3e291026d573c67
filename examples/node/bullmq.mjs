// A BullMQ worker that does one job at a time for each customer, in any number of processes. BullMQ itself locks the job, not the customer.
// LOCKTENDER_URL=redis://localhost node bullmq.mjs      (the queue is on the server of the locks)

import { setTimeout as sleep } from 'node:timers/promises'

import { DelayedError, Queue, QueueEvents, Worker } from 'bullmq'
import { Client } from 'locktender'

const client = new Client()
const connection = { url: process.env.LOCKTENDER_URL }

/** Bills a customer. Without a wait for the lock: a job that waited would occupy its worker. */
async function bill(job, token) {
  const { customer, month } = job.data
  const { ran, result } = await client.tryWithLock(`example:customer:${customer}`, async (hold) => {
    console.log(`customer ${customer}: ${month} begins`)
    await sleep(100, undefined, { signal: hold.signal })     // stands for the work; ends at once if the lock is lost
    hold.check()                                             // before each write: the job fails, and begins again by its `attempts`
    console.log(`customer ${customer}: ${month} ends`)
    return hold.fence
  })
  if (ran) return result
  await job.moveToDelayed(Date.now() + 100, token)           // another job bills this customer; this uses up no attempt
  throw new DelayedError()
}

const worker = new Worker('example-bills', bill, { connection, concurrency: 4 })
worker.on('error', console.error)                            // without a listener an error of its connection ends the process

// Two customers with two jobs each.
const queue = new Queue('example-bills', { connection })
const events = new QueueEvents('example-bills', { connection })
const options = { attempts: 3, backoff: { type: 'exponential', delay: 1_000 }, removeOnComplete: { age: 3_600 } }
const data = [7, 8].flatMap((customer) => ['May', 'June'].map((month) => ({ customer, month })))
const jobs = await queue.addBulk(data.map((data) => ({ name: 'bill', data, opts: options })))
await Promise.all(jobs.map((job) => job.waitUntilFinished(events)))

await worker.close()                                         // first: it waits for the jobs in hand. SIGTERM should do these two
await client.close()
await Promise.all([queue.close(), events.close()])
