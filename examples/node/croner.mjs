// A task that one of several replicas runs at each scheduled time: croner starts it in each, and `cronJob` compares the planned times.
// LOCKTENDER_URL=redis://localhost node croner.mjs        (in two terminals; the clocks of two machines may differ)

import { Cron } from 'croner'
import { Client } from 'locktender'

const client = new Client()
const last = Math.ceil(Date.now() / 1_000) * 1_000 + 2_000

new Cron('* * * * * *', async (cron) => {
  // The last time of the pattern, this millisecond included; currentRun() is when the run began.
  const [planned] = cron.previousRuns(1, new Date(Date.now() + 1))
  const { ran, reason } = await client.cronJob('example:croner', { at: planned }).run(async (attempt) => attempt.fence)
  console.log(`${planned.toISOString()} ${ran ? 'ran' : `left out: ${reason}`}`)
  if (planned >= last) {
    cron.stop()
    await client.close()
  }
})
