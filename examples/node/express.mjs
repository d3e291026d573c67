// An Express service that serves one request at a time for each order, in any number of processes. Other requests get 409.
// A signal notifies a handler whose client closes the connection, or whose lock is lost.
import { once } from 'node:events'

import express from 'express'
import { AcquireTimeoutError, Client, UnavailableError } from 'locktender'

const client = new Client()                                   // LOCKTENDER_URL
const app = express()

app.post('/orders/:id/charge', async (request, response) => {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const receipt = await client.withLock(`orders:${request.params.id}`, { ttlMs: 5_000, waitMs: 100, signal: gone.signal }, async (hold) => {
    await charge(AbortSignal.any([hold.signal, gone.signal]))
    return { order: request.params.id, fence: hold.fence }    // send the fence along with each write
  })
  response.json(receipt)
})

app.use((error, request, response, next) => {
  if (error instanceof AcquireTimeoutError) response.status(409).set('Retry-After', '1').json({ code: error.code })
  else if (error instanceof UnavailableError) response.status(503).json({ code: error.code })
  else next(error)
})

/** Stands for the payment provider: takes a while, unless it is called off. */
async function charge(signal) {
  await new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 300)
    signal.addEventListener('abort', () => { clearTimeout(timer); reject(signal.reason) }, { once: true })
  })
}

const server = app.listen(0, '127.0.0.1')
await once(server, 'listening')

// Three customers with one order, and one with another.
const url = `http://127.0.0.1:${server.address().port}`
const answers = await Promise.all(['7', '7', '7', '8'].map((order) => fetch(`${url}/orders/${order}/charge`, { method: 'POST' })))
console.log(answers.map(({ status }) => status).sort().join(' '))   // 200 200 409 409

server.close()
server.closeAllConnections()
await client.close()
