import { Metrics } from './metrics.js'

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
