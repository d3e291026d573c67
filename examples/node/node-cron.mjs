// A scheduled job that one of several replicas runs each time: a coordinator of node-cron takes the lock.
import cron from 'node-cron'
import { Client } from 'locktender'

/**
 * Elects the runner of each scheduled time by a lock. It isn't given back when the job is done but handed to nobody, so that it ends
 * with its ttl: a replica whose clock is a little behind must not find it free again.
 */
class LockCoordinator {
  #client

  constructor(client) {
    this.#client = client
  }

  async shouldRun(key, ttlMs) {
    const held = await this.#client.lock(`cron:${key}`, { ttlMs: Math.max(ttlMs, 1_000), renew: false }).tryAcquire()
    held?.handOver()                                           // from now on neither release nor close() frees it
    return held !== null
  }
}

const client = new Client()                                    // LOCKTENDER_URL
let runs = 0
const names = ['replica 1', 'replica 2', 'replica 3']          // in a real service each is a separate process
const tasks = names.map((name) =>
  cron.schedule('* * * * * *', () => { runs += 1; console.log(`${name} runs the job`) }, {
    name: 'report',
    distributed: true,
    suppressMissedWarning: true,                               // a machine that was busy for a second is no problem here
    runCoordinator: new LockCoordinator(client),
  }))

await new Promise((resolve) => setTimeout(resolve, 3_500))
await Promise.all(tasks.map((task) => task.destroy()))
console.log(`${runs} runs`)                                    // 3 or 4: one a second, not three
await client.close()
if (runs < 1 || runs > 4) process.exitCode = 1
