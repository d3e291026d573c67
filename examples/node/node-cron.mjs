// A job that every replica has in its schedule, and one of them runs each time: node-cron asks a coordinator.
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
    held?.handOver()                                           // no longer ours to release, also not by close()
    return held !== null
  }
}

const client = new Client()                                    // LOCKTENDER_URL
let runs = 0
const names = ['replica 1', 'replica 2', 'replica 3']          // each is a process of its own in real life
const tasks = names.map((name) =>
  cron.schedule('* * * * * *', () => { runs += 1; console.log(`${name} runs the job`) }, {
    name: 'report',
    distributed: true,
    suppressMissedWarning: true,                               // a machine that was busy for a second is not worth a word here
    runCoordinator: new LockCoordinator(client),
  }))

await new Promise((resolve) => setTimeout(resolve, 3_500))
await Promise.all(tasks.map((task) => task.destroy()))
console.log(`${runs} runs`)                                    // 3 or 4: one a second, not three
await client.close()
if (runs < 1 || runs > 4) process.exitCode = 1
