// An Express service with one charge at a time for each order, in any number of processes. Other requests get 409.
//   LOCKTENDER_URL=redis://localhost PORT=3000 node express.mjs
//   curl --request POST localhost:3000/orders/42/charge
// SIGTERM shuts it down gracefully: it finishes its requests, or cancels them after five seconds. Both release their locks.

import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

import express from 'express'
import { AcquireTimeoutError, Client, UnavailableError } from 'locktender'

const { PORT = 0, CHARGE_MS = 300, GRACE_MS = 5_000 } = process.env

const client = new Client()                                     // LOCKTENDER_URL; one client for the process
const app = express()

app.post('/orders/:id/charge', async (request, response) => {
  const gone = new AbortController()
  response.once('close', () => gone.abort())                    // the customer hung up, or has the answer
  const order = request.params.id
  const receipt = await client.withLock(`orders:${order}`, { waitMs: 100, signal: gone.signal }, async (hold) => {
    await charge(AbortSignal.any([hold.signal, gone.signal]))   // cancelled if the lock is lost, or the customer hangs up
    return { order, fence: hold.fence }                         // send the fence along with each write
  })
  response.json(receipt)
})

app.use((error, request, response, next) => {
  if (response.closed) return                                   // the connection is gone: there is nothing to answer
  if (error instanceof AcquireTimeoutError) response.status(409).set('Retry-After', '1').json({ code: error.code })
  else if (error instanceof UnavailableError) response.status(503).set('Retry-After', '1').json({ code: error.code })
  else next(error)
})

/** Stands for the payment provider: takes a while, unless it is cancelled. */
function charge(signal) {
  return sleep(Number(CHARGE_MS), undefined, { signal })
}

const server = app.listen(Number(PORT), '127.0.0.1')

process.once('SIGTERM', async () => {
  const closed = once(server, 'close')
  server.close()                                                            // accepts no more requests, and finishes those that it has
  setInterval(() => server.closeIdleConnections(), 100).unref()             // those that customers keep alive
  setTimeout(() => server.closeAllConnections(), Number(GRACE_MS)).unref()  // a charge that takes too long
  await closed
  await client.close()                                                      // last: requests lose their locks with it
})

await once(server, 'listening')
console.log(`http://127.0.0.1:${server.address().port}`)
