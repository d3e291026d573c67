import type * as native from '../native/index.js'
import { text } from './checks.js'
import { InvalidArgumentError } from './errors.js'
import { queue } from './queue.js'

/** One value of a metric, and what it is about. */
export interface Sample {
  /** The labels with their values. */
  readonly labels: Readonly<Record<string, string>>
  /** The number; of a histogram, the sum of its times in seconds. */
  readonly value: number
  /**
   * Of a histogram: the upper bound of each bucket in seconds, and how many times were not longer. The last bound is `Infinity`. `null`
   * for a counter and a gauge.
   */
  readonly buckets: readonly (readonly [bound: number, count: number])[] | null
}

/** A metric: its name, its meaning and its values. */
export interface Metric {
  /** The name. That of a counter ends with `_total`, that of a time with `_seconds`. */
  readonly name: string
  /** What its numbers are. */
  readonly kind: 'counter' | 'gauge' | 'histogram'
  /** Its meaning, as one sentence. */
  readonly help: string
  /** One sample for each combination of labels. */
  readonly samples: readonly Sample[]
}

/**
 * What clients have counted, read at one moment. Iterating gives each {@link Metric}.
 *
 * @example
 * ```js
 * const client = new Client('memory://example')
 * await client.withLock('orders:42', async () => {
 *   console.log(client.metrics().value('locktender_held', { category: 'orders' }))   // 1
 * })
 * ```
 */
export class Metrics {
  readonly #native: native.Metrics

  /** @internal */
  constructor(native: native.Metrics) {
    this.#native = native
  }

  /** All clients of this thread, as if they were one. @internal */
  static readonly ofAllClients = { metrics: (): Metrics => new Metrics(queue.metrics()) }

  /**
   * The sum of the samples of the metric `name` that have all of these labels; of a histogram, the number of its times. 0 if there is
   * none. Throws `InvalidArgumentError` if no metric has the name.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * await client.withLock('orders:42', async () => 'paid')
   * console.log(client.metrics().value('locktender_acquires_total', { end: 'acquired' }))   // 1
   * ```
   */
  value(name: string, labels: Readonly<Record<string, string>> = {}): number {
    const known = text('name', name)
    if (!this.#native.has(known)) throw InvalidArgumentError.of('name', known, 'there is no metric of this name')
    const given = Object.fromEntries(Object.entries(labels).map(([label, value]) => [label, text(label, value)]))
    return this.#native.value(known, given)
  }

  /**
   * The metrics as a text in the OpenMetrics format, which Prometheus and others read. Its media type is
   * `application/openmetrics-text; version=1.0.0; charset=utf-8`.
   *
   * @example
   * ```js
   * console.log(new Client('memory://example').metrics().openmetrics().includes('# TYPE locktender_held gauge'))   // true
   * ```
   */
  openmetrics(): string {
    return this.#native.openmetrics()
  }

  /**
   * Gives each metric.
   *
   * @example
   * ```js
   * const gauges = [...new Client('memory://example').metrics()].filter(({ kind }) => kind === 'gauge')
   * console.log(gauges[0].name)   // locktender_held
   * ```
   */
  [Symbol.iterator](): IterableIterator<Metric> {
    return this.toJSON()[Symbol.iterator]()
  }

  /**
   * All metrics, as JSON has them.
   *
   * @example
   * ```js
   * console.log(JSON.stringify(new Client('memory://example').metrics()).startsWith('[{"name":"locktender_held"'))   // true
   * ```
   */
  toJSON(): Metric[] {
    return this.#native.list() as Metric[]
  }
}

/**
 * What all clients of this thread have counted, as the metrics of one client. The totals of those that were closed stay.
 *
 * @example
 * ```js
 * configure('memory://example')   // or LOCKTENDER_URL in the environment
 * await withLock('reports:7', async () => 'written')
 * console.log(metrics().value('locktender_hold_seconds', { category: 'reports' }))   // 1
 * ```
 */
export function metrics(): Metrics {
  return Metrics.ofAllClients.metrics()
}

/** A registry of `prom-client`, or anything else that takes metrics as it does. */
export interface MetricRegister {
  registerMetric: (metric: never) => void
}

/**
 * Adds all metrics to a registry of `prom-client`, which reads them at each scrape: those of `client`, or else of all clients of this
 * thread. Throws the registry's error if it has a metric of such a name.
 *
 * @example
 * ```js
 * const text = []
 * const register = { registerMetric: (metric) => text.push(metric.name) }   // or that of prom-client
 * registerMetrics(register)
 * console.log(text.includes('locktender_held'))   // true
 * ```
 */
export function registerMetrics(register: MetricRegister, client: { metrics(): Metrics } = Metrics.ofAllClients): void {
  for (const { name, help, kind } of client.metrics()) {
    const metric = {
      name,
      help,
      type: kind,
      aggregator: 'sum',
      // The registry may have changed the name: OpenMetrics wants that of a counter without its end.
      get: async () => ({ name: metric.name, help, type: kind, aggregator: 'sum', values: valuesOf(client.metrics(), name) }),
      // A registry resets what it owns. These numbers are the client's.
      reset: () => undefined,
    }
    register.registerMetric(metric as never)
  }
}

/** A bound as OpenMetrics wants it, so that every language's series have the same labels. */
function spelled(bound: number): string {
  if (bound === Infinity) return '+Inf'
  return Number.isInteger(bound) ? bound.toFixed(1) : String(bound)
}

interface PromValue {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
  readonly metricName?: string
}

function valuesOf(metrics: Metrics, name: string): PromValue[] {
  const samples = [...metrics].find((metric) => metric.name === name)?.samples ?? []
  return samples.flatMap(({ labels, value, buckets }): PromValue[] => {
    if (!buckets) return [{ labels, value }]
    const counts = buckets.map(([bound, count]) => ({
      labels: { le: spelled(bound), ...labels },
      value: count,
      metricName: `${name}_bucket`,
    }))
    const all = counts.at(-1)?.value ?? 0
    return [...counts, { labels, value, metricName: `${name}_sum` }, { labels, value: all, metricName: `${name}_count` }]
  })
}
