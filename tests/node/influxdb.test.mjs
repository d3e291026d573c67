import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'

import { Client, InvalidArgumentError } from 'locktender'
import { Points } from 'locktender/influxdb'

import { until } from './support/observe.mjs'

/** Waits until all three events of an acquire and its release have come. */
async function lifeOf(client, name) {
  const released = new Promise((resolve) => client.once('released', resolve))
  await client.withLock(name, async () => 'done')
  return await released
}

test('a point has what the event has, in batches by size', async () => {
  const written = []
  const points = new Points((lines) => written.push(lines), { tags: { app: 'bill,ing', host: '' }, size: 2, intervalMs: 600_000 })
  const client = new Client(`memory://${randomUUID()}`)
  client.on('event', points.add)
  const event = await lifeOf(client, 'orders:"4 2"')
  await points.flush()
  const lines = written.join('').split('\n').filter(Boolean)
  assert.equal(written[0].split('\n').length, 3)
  const fields = `lock_name="orders:\\"4 2\\"",owner="${event.owner}",message="released",fence=${event.fence}i,took=`
  assert.match(lines[2], /^locktender,app=bill\\,ing,event=released,category=orders,kind=lock /)
  const [before, behind] = lines[2].split(fields)
  assert.ok(before.endsWith(' ') && behind, lines[2])
  const [took, at] = behind.split(' ').map(Number)
  // The event has microseconds in milliseconds, the point seconds and nanoseconds.
  assert.ok(Math.abs(took * 1e3 - event.tookMs) < 1e-3 && Math.abs(at / 1e6 - event.atMs) < 1, behind)
  await client.close()
})

test('a write that fails costs its batch, and is told', async () => {
  const errors = []
  const points = new Points(() => Promise.reject(new Error('refused')), { intervalMs: 1, onError: (error) => errors.push(error) })
  const client = new Client(`memory://${randomUUID()}`)
  client.on('event', points.add)
  await lifeOf(client, 'orders:42')
  // No timer of points keeps a process alive; those of the wait do.
  await until(() => points.dropped === 3, 20_000)
  assert.equal(errors[0].message, 'refused')
  await client.close()
})

test('the last points are dropped if they are too many while a write hangs', async () => {
  let goOn
  const written = []
  const hang = new Promise((resolve) => (goOn = resolve))
  const points = new Points(async (lines) => {
    written.push(lines)
    await hang
  }, { size: 3 })
  const client = new Client(`memory://${randomUUID()}`)
  client.on('event', points.add)
  const fences = []
  for (let number = 0; number < 20; number += 1) fences.push((await lifeOf(client, 'orders:42')).fence)
  goOn()
  await points.flush()
  assert.equal(written.join('').split('\n').length - 1 + points.dropped, 60)
  assert.equal(points.dropped, 27)
  const released = [...written.join('').matchAll(/,event=released,.*,fence=(\d+)i/g)].map(([, fence]) => Number(fence))
  assert.deepEqual(released, fences.slice(0, 11))
  await client.close()
})

test('a wrong option is refused where it is given', () => {
  for (const wrong of [{ size: 0 }, { size: 1.5 }, { intervalMs: 0 }, { intervalMs: NaN }, { tags: { app: 7 } }]) {
    assert.throws(() => new Points(() => undefined, wrong), InvalidArgumentError, JSON.stringify(wrong))
  }
  assert.throws(() => new Points('http://localhost:8086/write'), /write/)
})
