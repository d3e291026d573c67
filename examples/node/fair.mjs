// A fair lock, whose waiters are served in the order in which they came, across all processes.
// LOCKTENDER_URL=redis://localhost node fair.mjs

import { setTimeout as sleep } from 'node:timers/promises'

import { Client } from 'locktender'

const client = new Client()
const counter = client.lock('example:counter', { fair: true })
const hold = await counter.acquire()

const customers = []
for (let number = 1; number <= 3; number++) {
  customers.push(client.withLock('example:counter', { fair: true }, () => console.log(`customer ${number} is served`)))
  while ((await counter.inspect()).waiters < number) await sleep(10) // let each customer take a place before the next one comes
}
console.log('in line:', ...(await counter.inspect()).queue)
await hold.release()
await Promise.all(customers)
await client.close()
