// OpenTelemetry, by its own API and SDK: spans of acquires and holds, and metrics equal to the client's.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import v8 from 'node:v8'

import * as api from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { registerInstrumentations } from '@opentelemetry/instrumentation'
import { DataPointType, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { Client, metrics } from 'locktender'
import { LocktenderInstrumentation } from 'locktender/opentelemetry'
import { ScriptedServer } from 'locktender/testing'

import { root } from './support/checkout.mjs'
import { PATIENCE_MS, until } from './support/observe.mjs'
import { startServer } from './support/server.mjs'

class Reader extends MetricReader {
  async onForceFlush() {}
  async onShutdown() {}
}

api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
const exporter = new InMemorySpanExporter()
const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
const reader = new Reader()
const meterProvider = new MeterProvider({ readers: [reader] })
after(registerInstrumentations({ instrumentations: [[new LocktenderInstrumentation()]], tracerProvider, meterProvider }))
const tracer = tracerProvider.getTracer('test')
const memory = (options) => new Client(`memory://${randomUUID()}`, { app: 'billing', ...options })

/** The spans that `work` makes within a span of its own, once there are `count` of them. */
async function spansOf(work, count) {
  exporter.reset()
  const parent = await tracer.startActiveSpan('request', async (span) => {
    await work()
    span.end()
    return span.spanContext().spanId
  })
  const spans = await until(() => {
    const made = exporter.getFinishedSpans().filter(({ instrumentationScope }) => instrumentationScope.name === 'locktender')
    return made.length >= count && made
  })
  for (const span of spans) assert.equal(span.parentSpanContext?.spanId, parent, span.name)
  return spans
}

const shown = (spans) => spans.map(({ name, attributes, status }) => [name, attributes['locktender.end'], status.code === 2 ? attributes['error.type'] : null])

test('an acquire and its hold are spans within the span of the caller, also in a body', async () => {
  const client = memory()
  let held
  const spans = await spansOf(async () => {
    await client.withLock('orders:"<4 2>"', { ttlMs: 60_000 }, async (hold) => {
      held = hold.toJSON()
      assert.equal(await client.lock('orders:"<4 2>"').tryAcquire(), null)
    })
  }, 3)
  assert.deepEqual(shown(spans), [['acquire', 'acquired', null], ['acquire', 'not_acquired', null], ['hold', 'released', null]])
  const [acquire, busy, hold] = spans
  const common = { 'locktender.lock_name': 'orders:"<4 2>"', 'locktender.key': 'orders:"<4 2>"', 'locktender.category': 'orders', 'locktender.kind': 'lock', 'locktender.app': 'billing' }
  const { 'locktender.wait': wait, ...rest } = acquire.attributes
  assert.deepEqual(rest, { ...common, 'locktender.owner': held.owner, 'locktender.fence': held.fence, 'locktender.end': 'acquired', 'locktender.rounds': 1 })
  assert.ok(wait >= 0 && wait < 60)
  assert.deepEqual(hold.attributes, { ...common, 'locktender.owner': held.owner, 'locktender.fence': held.fence, 'locktender.end': 'released' })
  assert.deepEqual([acquire.kind, hold.kind, busy.attributes['locktender.owner']], [api.SpanKind.CLIENT, api.SpanKind.INTERNAL, undefined])
  assert.deepEqual(hold.startTime, acquire.endTime)
  await client.close()
})

test('several locks have one acquire and one hold, which ends with the first of them that ends', async () => {
  const client = memory()
  const spans = await spansOf(async () => {
    const hold = await client.multiLock(['orders:2', 'orders:1']).acquire()
    await client.lock('orders:2').forceRelease()
    await hold.extend().catch(() => {})
    await hold.release()
  }, 2)
  assert.deepEqual(shown(spans), [['acquire', 'acquired', null], ['hold', 'lost', 'LOCK_LOST']])
  for (const { attributes } of spans) assert.equal(attributes['locktender.lock_name'], 'orders:2, orders:1')
  await client.close()
})

test('an end is an error where the caller got one, or where the hold was lost', async (t) => {
  const [client, server] = [memory(), await startServer(t)]
  const onServer = new Client(server.url, { responseTimeoutMs: PATIENCE_MS })
  const stop = new AbortController()
  const spans = await spansOf(async () => {
    const held = await client.lock('orders:1').acquire()
    await client.lock('orders:1', { waitMs: 20 }).acquire().catch(() => undefined)
    const waits = client.lock('orders:1').acquire({ signal: stop.signal }).catch(() => undefined)
    stop.abort()
    await waits
    await held.release()
    const lost = await client.lock('orders:2', { maxHoldMs: 20 }).acquire()
    await lost.lost
    const expired = await onServer.lock(t.name, { ttlMs: 60_000 }).acquire()
    await server.command('DEL', t.name)
    await expired.release()
    const raced = await onServer.lock(t.name, { ttlMs: 60_000 }).acquire()
    await server.command('SET', t.name, 'a rival')
    await raced.release()
    const ticket = (await client.lock('orders:4').acquire()).handOver()
    await (await client.adopt(ticket)).release()
    await client.job('mail:7').run(async () => 'sent')
    await client.job('mail:7').run(async () => 'sent')
    const leadership = await client.election('scheduler').campaign()
    await leadership.resign()
    await client.close()
    await client.lock('orders:1').acquire().catch(() => undefined)
  }, 20)
  const ends = shown(spans).map((each) => each.join(' ')).sort()
  assert.deepEqual(ends, [
    'acquire acquire_failed CLOSED', ...Array.from({ length: 8 }, () => 'acquire acquired '), 'acquire cancelled ', 'acquire done ',
    'acquire timed_out ACQUIRE_TIMEOUT',
    'hold expired ', 'hold handed_over ', 'hold lost LOCK_LOST', 'hold overlapped overlapped', ...Array.from({ length: 4 }, () => 'hold released '),
  ])
  const ofJob = spans.find(({ name, attributes }) => name === 'hold' && attributes['locktender.kind'] === 'job')
  assert.equal(ofJob.attributes['locktender.job.attempt'], 1)
  const told = spans.flatMap(({ events }) => events).map(({ name, attributes }) => [name, attributes['locktender.reason'] ?? attributes['locktender.next_owner']])
  assert.deepEqual(told.sort(), [['lost', 'max_hold'], ['overlapped', 'a rival']])
  await onServer.close()
})

/** How a client's acquires ended, as its metrics count them. */
function counted(client) {
  const { samples } = [...client.metrics()].find(({ name }) => name === 'locktender_acquires_total')
  const sum = (sums, { labels: { end }, value }) => (value > 0 ? { ...sums, [end]: (sums[end] ?? 0) + value } : sums)
  return samples.reduce(sum, {})
}

const asked = {
  ACQUIRE_TIMEOUT: ['always acquire: busy', 'timed_out'],
  UNAVAILABLE: ['always acquire: fail refused', 'acquire_failed'],
  DENIED: ['always acquire: fail denied', 'acquire_failed'],
  KEY_CONFLICT: ['always acquire: conflict', 'acquire_failed'],
}
for (const [code, [script, end]] of Object.entries(asked)) {
  test(`an acquire that has asked ends as the metrics count it: ${code}`, async () => {
    const client = new Client(new ScriptedServer(script), { unavailableAfterMs: 10, waitMs: 10 })
    const [{ attributes }] = await spansOf(() => assert.rejects(client.lock('orders:1').acquire(), { code }), 1)
    assert.deepEqual([attributes['locktender.end'], attributes['error.type'], attributes['locktender.lock_name']], [end, code, 'orders:1'])
    assert.deepEqual(counted(client), { [end]: 1 })
    await client.close()
  })
}

test('an acquire that waits while its client closes was cancelled, and a dead job is dead', async () => {
  const client = memory()
  const spans = await spansOf(async () => {
    const job = client.job('mail:7', { maxAttempts: 1 })
    await (await job.begin()).fail('no address', { retry: false })
    await assert.rejects(job.begin(), { code: 'JOB_DEAD' })
    await client.lock('orders:1').acquire()
    const waits = client.lock('orders:1', { waitMs: PATIENCE_MS }).acquire()
    await until(() => client.metrics().value('locktender_waiting') === 1)
    await Promise.all([assert.rejects(waits, { code: 'CLOSED' }), client.close()])
  }, 6)
  const failed = shown(spans).filter(([name, , type]) => name === 'acquire' && type)
  assert.deepEqual(failed, [['acquire', 'dead', 'JOB_DEAD'], ['acquire', 'cancelled', 'CLOSED']])
  assert.deepEqual(counted(client), { acquired: 2, dead: 1, cancelled: 1 })
})

const refused = {
  acquire: ['lock', (client) => client.lock('orders:1').acquire()],
  tryAcquire: ['lock', (client) => client.lock('orders:1').tryAcquire()],
  withLock: ['lock', (client) => client.withLock('orders:1', async () => undefined)],
  job: ['job', (client) => client.job('orders:1').begin()],
  election: ['election', (client) => client.election('orders:1').campaign()],
}
for (const [way, [kind, acquire]] of Object.entries(refused)) {
  test(`a refused acquire tells its lock, and nothing counts it: ${way}`, async () => {
    const client = memory({ prefix: 'p:' })
    client.on('event', (event) => assert.fail(event.kind))
    await client.close()
    const [{ attributes }] = await spansOf(() => assert.rejects(acquire(client), { code: 'CLOSED' }), 1)
    const { 'locktender.wait': wait, ...told } = attributes
    assert.ok(wait >= 0)
    const lock = { lock_name: 'orders:1', key: 'p:orders:1', kind, category: 'orders', app: 'billing', end: 'acquire_failed', rounds: 0 }
    assert.deepEqual(told, { ...Object.fromEntries(Object.entries(lock).map(([name, value]) => [`locktender.${name}`, value])), 'error.type': 'CLOSED' })
    assert.deepEqual(counted(client), {})
  })
}

/** The points of each metric, by its name. */
async function collected() {
  const { resourceMetrics, errors } = await reader.collect()
  assert.deepEqual(errors, [])
  return new Map(resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics).map((metric) => [metric.descriptor.name, metric]))
}

/** The rows of the page's table: OpenTelemetry's name, the core's, the kind and the unit. */
const rows = [...readFileSync(path.join(root, 'docs/observability.md'), 'utf8').matchAll(/^\| `(locktender\.[\w.]+)` \| `(locktender_\w+)` \| ([\w-]+) \| `(.+?)` \|$/gm)].map((row) => row.slice(1))

test('each metric has the numbers of the client, under the name that the page tells', async () => {
  // Histograms also have what other tests' clients took.
  const client = memory({ app: 'counted' })
  const held = await client.lock('orders:42').acquire()
  await client.withLock('mail:7', async (hold) => hold.extend({ ttlMs: 60_000 }))
  await client.lock('orders:42').tryAcquire()
  await client.lock('orders:42', { waitMs: 10 }).acquire().catch(() => undefined)
  const found = await collected()
  const read = metrics()
  assert.deepEqual(rows.map(([, name]) => name), [...read].map(({ name }) => name))
  const kinds = { counter: DataPointType.SUM, 'up-down': DataPointType.SUM, gauge: DataPointType.GAUGE, histogram: DataPointType.HISTOGRAM }
  for (const { name, samples: all } of read) {
    const samples = all.filter(({ labels }) => labels.app === 'counted')
    const [otelName, , kind, unit] = rows.find((row) => row[1] === name)
    const metric = found.get(otelName)
    if (samples.length === 0) continue
    assert.deepEqual([metric.descriptor.unit, metric.dataPointType, metric.isMonotonic], [unit, kinds[kind], kind === 'counter' || (kind === 'up-down' ? false : undefined)], otelName)
    if (/longest|least/.test(name)) continue
    for (const { labels, value, buckets } of samples) {
      const wanted = Object.entries(labels).map(([label, text]) => [label === 'server' ? 'server.address' : `locktender.${label}`, text])
      const point = metric.dataPoints.find(({ attributes }) => wanted.every(([key, text]) => attributes[key] === text))
      if (!buckets) assert.equal(point.value, value, `${otelName} ${JSON.stringify(labels)}`)
      else {
        assert.deepEqual(point.value.buckets.boundaries, buckets.slice(0, -1).map(([bound]) => bound))
        assert.equal(point.value.count, buckets.at(-1)[1], otelName)
        assert.ok(Math.abs(point.value.sum - value) < 1e-5, `${otelName}: ${point.value.sum}`)
      }
    }
  }
  await held.release()
  await client.close()
})

test('a server has the attributes of a database server, without credentials', async () => {
  const client = new Client('redis://ann:hunter2@127.0.0.1:1/3', { unavailableAfterMs: 10 })
  await assert.rejects(client.lock('orders:42').inspect())
  const text = JSON.stringify([...(await collected()).values()].map(({ dataPoints }) => dataPoints))
  assert.ok(text.includes('"server.address":"127.0.0.1","server.port":1,"db.system.name":"redis","db.namespace":"3"'))
  assert.ok(!text.includes('hunter2') && !text.includes('ann:'))
  await client.close()
})

test('nothing is left of many holds, in the long tests also behind more events than are kept', async () => {
  const { Followed } = createRequire(import.meta.url)(path.join(root, 'bindings-node/dist/spans.js'))
  const client = memory({ ttlMs: 3_600_000 })
  const count = process.env.LOCKTENDER_LONG ? 10_000 : 300
  const spans = await spansOf(async () => {
    const holds = await Promise.all(Array.from({ length: count }, (_, number) => client.lock(`orders:${number}`).acquire()))
    await Promise.all(holds.map((held) => held.release()))
  }, 2 * count)
  assert.equal(spans.length, 2 * count)
  exporter.reset()
  // Node has it since 20.13.
  assert.equal(v8.queryObjects?.(Followed, { format: 'count' }) ?? 0, 0)
  await client.close()
})

test('one client alone, and a provider that throws', async (t) => {
  const [own, other] = [memory(), memory()]
  const instrumentation = new LocktenderInstrumentation({ client: own })
  t.after(() => instrumentation.disable())
  const ours = new InMemorySpanExporter()
  instrumentation.setTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(ours)] }))
  instrumentation.enable()
  for (const client of [other, own]) await client.withLock('orders:42', async () => 'paid')
  await until(() => ours.getFinishedSpans().length === 2)
  assert.equal(exporter.getFinishedSpans().length >= 4, true)
  const thrower = new Proxy(() => undefined, { apply() { throw new Error('a test') }, get(_, name) { return name === 'then' ? undefined : thrower } })
  instrumentation.setTracerProvider({ getTracer: () => thrower })
  instrumentation.setMeterProvider({ getMeter: () => { throw new Error('a test') } })
  assert.equal(await own.withLock('orders:42', async () => 'paid'), 'paid')
  await Promise.all([own.close(), other.close()])
})

test('without the API the error says what to install', async (t) => {
  const directory = mkdtempSync(path.join(tmpdir(), 'locktender-'))
  t.after(() => rmSync(directory, { recursive: true }))
  for (const part of ['package.json', 'bindings-node/dist', 'bindings-node/native']) {
    cpSync(path.join(root, part), path.join(directory, 'node_modules/locktender', part), { recursive: true })
  }
  const program = "const { LocktenderInstrumentation } = require('locktender/opentelemetry'); try { new LocktenderInstrumentation() } catch (error) { console.log(error.message) }"
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', program], { cwd: directory })
  assert.match(stdout, /npm install @opentelemetry\/api/)
})
