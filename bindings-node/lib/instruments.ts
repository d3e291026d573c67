import type * as otel from '@opentelemetry/api'

import type { Attributes } from '../native/index.js'
import { addon } from './addon.js'
import type { Metric, Metrics, Sample } from './metrics.js'

/** The name in OpenTelemetry of the core's metric `name`: the names of the page on observability follow from this rule. */
function nameOf({ name, kind }: Pick<Metric, 'name' | 'kind'>): string {
  const own = name.replace(/^locktender_/, 'locktender.').replace(/_(total|seconds)$/, '')
  return kind === 'histogram' ? `${own}.duration` : own
}

/** What a metric counts, by the first word of its meaning: `hold` of "Holds now."; none if it is no count, and can't be added up. */
function countedBy({ help }: Metric): string | undefined {
  return /^([A-Z][a-z]+)s /.exec(help)?.[1]?.toLowerCase()
}

function unitOf(metric: Metric): string {
  if (metric.name.endsWith('_seconds')) return 's'
  const counted = countedBy(metric)
  return counted ? `{${counted}}` : '1'
}

/** Labels as attributes. */
function attributesOf(labels: Sample['labels']): otel.Attributes {
  return Object.fromEntries(
    Object.entries(labels).flatMap(([label, value]): [string, otel.AttributeValue][] =>
      label === 'server' ? Object.entries(serverOf(value)) : [[`locktender.${label}`, value]],
    ),
  )
}

/** The attributes of a server, by its address: a URL without credentials, or what a server of the application calls itself. */
function serverOf(address: string): Record<string, otel.AttributeValue> {
  const [, host, port, database] = /^rediss?:\/\/\[?(.+?)\]?:(\d+)(?:\/(\d+))?$/.exec(address) ?? []
  if (host === undefined) return { 'server.address': address }
  const found = { 'server.address': host, 'server.port': Number(port), 'db.system.name': 'redis' }
  return database === undefined ? found : { ...found, 'db.namespace': database }
}

/** The instruments of one meter: those that it reads by itself, and the histograms. @internal */
export class Instruments {
  readonly #observed = new Map<string, otel.Observable>()
  readonly #times = new Map<string, otel.Histogram>()

  constructor(private readonly meter: otel.Meter, private readonly read: () => Metrics) {
    for (const metric of read()) if (metric.kind !== 'histogram') this.#observed.set(metric.name, this.#observable(metric))
    for (const metric of read()) if (metric.kind === 'histogram') this.#histogram(metric)
    meter.addBatchObservableCallback(this.#observe, [...this.#observed.values()])
  }

  #observable(metric: Metric): otel.Observable {
    const options = { description: metric.help, unit: unitOf(metric) }
    if (metric.kind === 'counter') return this.meter.createObservableCounter(nameOf(metric), options)
    if (countedBy(metric)) return this.meter.createObservableUpDownCounter(nameOf(metric), options)
    return this.meter.createObservableGauge(nameOf(metric), options)
  }

  #histogram(metric: Metric): void {
    const time = /^locktender_(\w+)_seconds$/.exec(metric.name)?.[1]
    const advice = { explicitBucketBoundaries: addon.histogramBounds() }
    const options = { description: metric.help, unit: unitOf(metric), advice }
    if (time) this.#times.set(time, this.meter.createHistogram(nameOf(metric), options))
  }

  readonly #observe = (result: otel.BatchObservableResult): void => {
    for (const { name, samples } of this.read()) {
      const observable = this.#observed.get(name)
      if (!observable) continue
      for (const { labels, value } of samples) result.observe(observable, value, attributesOf(labels))
    }
  }

  /** Notes a time, in seconds. */
  record(time: string, seconds: number, labels: Attributes): void {
    this.#times.get(time)?.record(seconds, labels)
  }

  /** The meter reads nothing any more. */
  end(): void {
    this.meter.removeBatchObservableCallback(this.#observe, [...this.#observed.values()])
  }
}
