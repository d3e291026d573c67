// npm redlock's side: `node redlock.mjs <urls> <seconds> <callers>` prints the same fields as core/benches/sides.
import Redis from 'ioredis'
import Redlock from 'redlock'
import { measure } from './meter.mjs'

const [urls, seconds, callers] = process.argv.slice(2)
const clients = urls.split(',').map((url) => new Redis(url))
// A client without a listener prints what it can't reach.
for (const client of clients) client.on('error', () => {})
const redlock = new Redlock(clients)

await measure(Number(seconds), Number(callers), async (name) => {
  const held = await redlock.acquire([name], 10_000)
  await held.release()
})
process.exit()
