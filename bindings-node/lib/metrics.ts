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
