import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'

import { Client, InvalidArgumentError, metrics } from 'locktender'
import { registerMetrics } from 'locktender/prometheus'
import { Registry } from 'prom-client'

import { run } from './support/script.mjs'
import { sharedServer } from './support/server.mjs'

const server = await sharedServer()

const memory = () => new Client(`memory://${randomUUID()}`, { app: 'billing' })

test('a scrape by prom-client is the text that the core writes', async () => {
  const client = memory()
  const held = await client.lock('orders:"<b>\\').acquire()
  await client.withLock('mail:7', { category: 'a"b\\c {id}' }, async () => 'sent')
  const register = new Registry(Registry.OPENMETRICS_CONTENT_TYPE)
  registerMetrics(register, client)
  const lines = (text) => text.split('\n').filter((line) => line && !/^# (UNIT|EOF)|_seconds\{.*\} \d+\.\d/.test(line)).map((line) => sorted(line)).sort()
  const ages = /locktender_(longest|least)_/
  const [ours, theirs] = [client.metrics().openmetrics(), await register.metrics()].map(lines)
  assert.deepEqual(theirs.filter((line) => !ages.test(line)), ours.filter((line) => !ages.test(line)))
  await held.release()
  assert.throws(() => registerMetrics(register, client), /already been registered/)
  assert.match(await register.getSingleMetricAsString('locktender_held'), /category="orders",kind="lock"\} 0/)
  await client.close()
})

/** A line with its labels in order. */
function sorted(line) {
  return line.replace(/\{(.*)\}/, (_, labels) => `{${labels.match(/\w+="(?:[^"\\]|\\.)*"/g).sort()}}`)
}

test('all clients of the thread are counted together', async () => {
  const clients = [memory(), memory()]
  const before = metrics().value('locktender_acquires_total', { end: 'acquired' })
  for (const client of clients) await client.withLock('orders:42', async () => 'paid')
  assert.equal(metrics().value('locktender_acquires_total', { end: 'acquired' }) - before, 2)
  await Promise.all(clients.map((client) => client.close()))
})

test('the totals of clients that are garbage stay, and their gauges go', async (t) => {
  const program = `
    const { metrics } = await import('locktender')
    const read = (metric, labels) => metrics().value(metric, { category: 'gone', ...labels })
    const use = async () => {
      const client = new Client(url)
      await client.withLock('gone:1', async () => {})
      await client.close()
    }
    for (let count = 0; count < 3; count++) await use()
    while (read('locktender_last_fence') > 0) { gc(); await sleep(5) }
    say(read('locktender_acquires_total', { end: 'acquired' }), read('locktender_hold_seconds'), read('locktender_held'))`
  assert.deepEqual(await run(t, program, server, t.name, { flags: ['--expose-gc'] }), ['3 3 0'])
})

test('a name that no metric has, and labels that are no text, are refused', () => {
  const read = memory().metrics()
  assert.throws(() => read.value('locktender_hold'), InvalidArgumentError)
  assert.throws(() => read.value('locktender_held', { category: 7 }), InvalidArgumentError)
  assert.equal(read.value('locktender_held', { colour: 'red' }), 0)
  for (const { name, kind, samples } of read) {
    assert.equal(name.endsWith('_total'), kind === 'counter', name)
    assert.ok(Array.isArray(samples))
  }
})

test('the oldest events are lost to a blocked event loop and counted, and no result is', async () => {
  const client = memory()
  let [heard, last] = [0, '']
  client.on('event', ({ kind }) => ([heard, last] = [heard + 1, kind]))
  // All of them come while JavaScript works: each acquire and release has three events.
  const locks = Array.from({ length: 3_000 }, (_, number) => client.lock(`orders:${number}`, { ttlMs: 3_600_000 }))
  const holds = await Promise.all(locks.map((lock) => lock.acquire()))
  await Promise.all(holds.map((held) => held.release()))
  await client.close()
  const read = client.metrics()
  assert.equal(read.value('locktender_holds_total', { end: 'released' }), 3_000)
  assert.equal(heard + read.value('locktender_events_dropped_total'), 9_000)
  assert.equal(last, 'released')
})
