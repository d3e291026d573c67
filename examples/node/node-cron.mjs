// A task that one of several replicas runs at each scheduled time: node-cron starts it in each, and `cronJob` compares the planned times.
// LOCKTENDER_URL=redis://localhost node node-cron.mjs     (in two terminals; the clocks of two machines may differ)

import cron from 'node-cron'
import { Client } from 'locktender'

const client = new Client()
const last = Math.ceil(Date.now() / 1_000) * 1_000 + 2_000

const task = cron.schedule('* * * * * *', async ({ date }) => {    // date: the time for which node-cron planned this run
  const { ran, reason } = await client.cronJob('example:node-cron', { at: date }).run(async (attempt) => attempt.fence)
  console.log(`${date.toISOString()} ${ran ? 'ran' : `left out: ${reason}`}`)
  if (date >= last) await task.destroy()
}, { suppressMissedWarning: true })                             // a machine that was busy for a second is no problem here

task.on('task:destroyed', () => client.close())
