// Likely mistakes: a ttl in seconds, or a name that was not filled in, causes one warning for each place in the program.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Client, configure, job, lock, readLock, semaphore, tryWithSemaphore, withLock, withReadLock } from 'locktender'

import { until } from './support/observe.mjs'

/** The line that called this, or what called that. */
function here(outer = 0) {
  const frame = new Error().stack.split('\n')[2 + outer]
  return Number(/:(\d+):\d+\)?$/.exec(frame)[1])
}

/** The warnings of the process and of the client until the end of the test. */
function heard(t, client) {
  const [warnings, events] = [[], []]
  const note = (warning) => warnings.push(warning)
  process.on('warning', note)
  client?.on('warning', (event) => events.push(event))
  t.after(() => process.off('warning', note))
  return { warnings, events }
}

function clientOf(t, options) {
  const client = new Client(`memory://${t.name}`, options)
  t.after(() => client.close())
  return client
}

test('a ttl in seconds is an event and a warning of the process, once a place', async (t) => {
  const client = clientOf(t)
  const { warnings, events } = heard(t, client)
  for (const ttlMs of [10, 10, 11]) client.lock('orders', { ttlMs })
  const line = here() - 1
  await until(() => warnings.length > 0 && events.length > 0)
  const [warning] = warnings
  assert.equal(warning.message, 'ttlMs: 10 ms is shorter than an ordinary pause of a process; times are milliseconds here: was 10000 meant?')
  assert.deepEqual([warning.name, warning.code], ['LocktenderWarning', 'LOCKTENDER_SUSPICIOUS'])
  assert.ok(warning.detail.includes(`suspicions.test.mjs:${line}:`), warning.detail)
  assert.ok(warning.stack.split('\n').find((frame) => frame.startsWith('    at ')).includes(`suspicions.test.mjs:${line}:`), warning.stack)
  assert.deepEqual([events[0].lockName, events[0].message], ['orders', warning.message])
  client.lock('orders', { ttlMs: 30 })
  await until(() => warnings.length > 1 && events.length > 1)
  assert.deepEqual([warnings.length, events.length], [2, 2])
})

test('every call that takes a ttl names the place where it was called', async (t) => {
  const { warnings } = heard(t)
  const places = []
  const called = (value) => {
    places.push(here(1))
    return value
  }
  // So short a ttl may end while a machine stalls: before the answer, too.
  const ended = (worked) => worked.catch((error) => assert.match(error.code, /^(LOCK_LOST|UNAVAILABLE)$/))
  const client = called(new Client('memory://suspicions', { ttlMs: 50 }))
  called(configure('memory://suspicions', { ttlMs: 60 }))
  called(lock('orders', { ttlMs: 70 }))
  called(job('mail', { ttlMs: 70 }))
  called(client.job('mail', { ttlMs: 50 }))
  called(client.election('scheduler', { ttlMs: 50 }))
  called(client.semaphore('renders', { permits: 2, ttlMs: 50 }))
  called(client.readLock('prices', { ttlMs: 50 }))
  called(semaphore('renders', { permits: 2, ttlMs: 50 }))
  called(readLock('prices', { ttlMs: 50 }))
  await ended(called(client.withLock('one', { ttlMs: 20 }, () => 0)))
  await ended(called(client.tryWithLock('two', { ttlMs: 20 }, () => 0)))
  await ended(called(withLock('three', { ttlMs: 20 }, () => 0)))
  await ended(called(client.withSemaphore('four', { permits: 2, ttlMs: 20 }, () => 0)))
  await ended(called(client.tryWithReadLock('five', { ttlMs: 20 }, () => 0)))
  await ended(called(tryWithSemaphore('six', { permits: 2, ttlMs: 20 }, () => 0)))
  await ended(called(withReadLock('seven', { ttlMs: 20 }, () => 0)))
  called(Client.fromIoredis({ options: { host: '127.0.0.1', port: 1 } }, { ttlMs: 80 }))
  const held = await client.lock('handed', { ttlMs: 5_000 }).acquire()
  await called(client.adopt(held.handOver(), { ttlMs: 90 }))
  await until(() => warnings.length === places.length)
  warnings.forEach(({ detail, message }, at) => assert.ok(detail.includes(`suspicions.test.mjs:${places[at]}:`), `${message} ${detail}`))
})

test('a name that nobody filled in is warned about', async (t) => {
  const client = clientOf(t)
  const { warnings, events } = heard(t, client)
  client.lock('order:${id}')
  await until(() => warnings.length > 0 && events.length > 0)
  assert.equal(warnings[0].message, 'name: "order:${id}" has ${id} in it as it stands: was a template literal meant, in backticks?')
  assert.equal(events[0].lockName, 'order:${id}')
})

test('what is usual, or refused, is not warned about', async (t) => {
  const client = clientOf(t, { ttlMs: 100 })
  const { warnings, events } = heard(t, client)
  for (const name of ['order:{id}', 'order:$1', '${', '$']) client.lock(name, { ttlMs: 100 })
  for (const ttlMs of [NaN, -1, 1]) assert.throws(() => client.lock('orders', { ttlMs }))
  client.lock('the last one', { ttlMs: 99 })
  await until(() => warnings.length > 0 && events.length > 0)
  assert.deepEqual([warnings.length, events.map(({ lockName }) => lockName)], [1, ['the last one']])
})

test('without stacks it is said once for each text', async (t) => {
  const client = clientOf(t)
  const { warnings } = heard(t, client)
  const { stackTraceLimit } = Error
  t.after(() => (Error.stackTraceLimit = stackTraceLimit))
  Error.stackTraceLimit = 0
  client.lock('orders', { ttlMs: 33 })
  client.lock('orders', { ttlMs: 33 })
  client.lock('orders', { ttlMs: 34 })
  await until(() => warnings.length === 2)
})
