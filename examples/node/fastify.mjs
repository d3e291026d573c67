// A Fastify service with one charge at a time for each order, in any number of processes. Other requests get 409.
//   LOCKTENDER_URL=redis://localhost PORT=3000 node fastify.mjs
//   curl --request POST localhost:3000/orders/42/charge
// SIGTERM shuts it down gracefully: it finishes its requests, or cancels them after five seconds. Both release their locks.

import { setTimeout as sleep } from 'node:timers/promises'

import Fastify from 'fastify'
import { AcquireTimeoutError, Client, UnavailableError } from 'locktender'

const { PORT = 0, CHARGE_MS = 300, GRACE_MS = 5_000 } = process.env

/** `app.locks`: one client for the whole service, closed after its last request, and what its errors answer. */
async function locks(app, options) {
  const client = new Client(options)                            // LOCKTENDER_URL
  app.decorate('locks', client)
  app.addHook('onClose', () => client.close())
  app.setErrorHandler((error, request, reply) => {
    if (error instanceof AcquireTimeoutError) return reply.code(409).header('Retry-After', '1').send({ code: error.code })
    if (error instanceof UnavailableError) return reply.code(503).header('Retry-After', '1').send({ code: error.code })
    throw error
  })
}
locks[Symbol.for('skip-override')] = true                       // for the routes outside of the plugin, too (as fastify-plugin does)

const app = Fastify()
await app.register(locks)

app.post('/orders/:id/charge', async ({ params: { id }, signal }) =>
  app.locks.withLock(`orders:${id}`, { waitMs: 100, signal }, async (hold) => {
    await charge(AbortSignal.any([hold.signal, signal]))        // cancelled if the lock is lost, or the customer hangs up
    return { order: id, fence: hold.fence }                     // send the fence along with each write
  }))

/** Stands for the payment provider: takes a while, unless it is cancelled. */
function charge(signal) {
  return sleep(Number(CHARGE_MS), undefined, { signal })
}

app.addHook('preClose', async () => {
  setInterval(() => app.server.closeIdleConnections(), 100).unref()             // those that customers keep alive
  setTimeout(() => app.server.closeAllConnections(), Number(GRACE_MS)).unref()  // a charge that takes too long
})
process.once('SIGTERM', () => app.close())

console.log(await app.listen({ port: Number(PORT), host: '127.0.0.1' }))
