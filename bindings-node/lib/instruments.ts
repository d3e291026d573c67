import type * as otel from '@opentelemetry/api'

import { addon } from './addon.js'
import type { Metric, Metrics, Sample } from './metrics.js'

/** The histograms of the core, by what they measure. @internal */
export type Times = 'wait' | 'hold' | 'renewal' | 'handover'

const times: readonly Times[] = ['wait', 'hold', 'renewal', 'handover']

/** What a time is about. @internal */
export type About = Readonly<Record<'app' | 'family' | 'kind', string>>

// As many families as the core counts apart. Further ones are counted together, as there.
const MOST_FAMILIES = 100

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
  readonly #meter: otel.Meter
  readonly #read: () => Metrics
  readonly #observed = new Map<string, otel.Observable>()
  readonly #times = new Map<Times, otel.Histogram>()
  readonly #families = new Set<string>()

  constructor(meter: otel.Meter, read: () => Metrics) {
    this.#meter = meter
    this.#read = read
    for (const metric of read()) if (metric.kind !== 'histogram') this.#observed.set(metric.name, this.#observable(metric))
    for (const metric of read()) if (metric.kind === 'histogram') this.#histogram(metric)
    meter.addBatchObservableCallback(this.#observe, [...this.#observed.values()])
  }

  #observable(metric: Metric): otel.Observable {
    const options = { description: metric.help, unit: unitOf(metric) }
    if (metric.kind === 'counter') return this.#meter.createObservableCounter(nameOf(metric), options)
    if (countedBy(metric)) return this.#meter.createObservableUpDownCounter(nameOf(metric), options)
    return this.#meter.createObservableGauge(nameOf(metric), options)
  }

  #histogram(metric: Metric): void {
    const time = times.find((each) => metric.name === `locktender_${each}_seconds`)
    const advice = { explicitBucketBoundaries: addon.histogramBounds() }
    const options = { description: metric.help, unit: unitOf(metric), advice }
    if (time) this.#times.set(time, this.#meter.createHistogram(nameOf(metric), options))
  }

  readonly #observe = (result: otel.BatchObservableResult): void => {
    for (const { name, samples } of this.#read()) {
      const observable = this.#observed.get(name)
      if (!observable) continue
      for (const { labels, value } of samples) result.observe(observable, value, attributesOf(labels))
    }
  }

  /** Notes a time, in milliseconds. */
  record(time: Times, ms: number | null, about: About): void {
    if (ms === null) return
    const key = JSON.stringify([about.app, about.family, about.kind])
    if (this.#families.size < MOST_FAMILIES) this.#families.add(key)
    const family = this.#families.has(key) ? about.family : 'other'
    this.#times.get(time)?.record(ms / 1e3, attributesOf({ ...about, family }))
  }

  /** The meter reads nothing any more. */
  end(): void {
    this.#meter.removeBatchObservableCallback(this.#observe, [...this.#observed.values()])
  }
}
