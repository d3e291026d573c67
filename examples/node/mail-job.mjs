// Work that must be done once: two workers ask for it, and when one of them fails, the next attempt follows.
// LOCKTENDER_URL=redis://localhost node mail-job.mjs

import { Client } from 'locktender'

class MailServerDown extends Error {}

/** A stand-in for a mail server, which is down during the first attempt. */
async function send(attempt) {
  console.log(`attempt ${attempt.number} of ${attempt.maxAttempts}, fence ${attempt.fence}`)
  if (attempt.number === 1) throw new MailServerDown('the mail server is down')
  return { sent: 3 }
}

async function work(client, worker) {
  const job = client.job('example:mail', { retryDelayMs: 200, retentionMs: 60_000 }) // a process that asks a minute later sends the mail again
  for (;;) {
    try {
      const { ran, result } = await job.run(send) // waits while the other worker runs the job
      return console.log(`${worker}: ${ran ? 'done by me' : 'done before'}, ${JSON.stringify(result)}`)
    } catch (error) {
      if (!(error instanceof MailServerDown)) throw error
      console.log(`${worker} failed, and asks again: ${error.message}`)
    }
  }
}

const client = new Client()
await Promise.all([work(client, 'Diego'), work(client, 'Milten')])
const { state, attempts, lastOwner } = await client.job('example:mail').status()
console.log(`${state} after ${attempts} attempts, by ${lastOwner}`)
await client.close()
