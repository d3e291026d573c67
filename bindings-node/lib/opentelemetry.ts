import type * as otel from '@opentelemetry/api'

import type { Client } from './client.js'
import { emitterOf, type Follower } from './events.js'
import { follow, unfollow } from './follow.js'
import { Instruments } from './instruments.js'
import { Metrics } from './metrics.js'
import { Followed } from './spans.js'

/** Options of `LocktenderInstrumentation`. */
export interface InstrumentationOptions {
  /** The client whose locks are measured and traced. Default: all clients of this thread. */
  client?: Client | undefined
}

const scope = 'locktender'
const { version } = require('../../package.json') as { version: string }

function apiOf(): typeof otel {
  try {
    return require('@opentelemetry/api') as typeof otel
  } catch (cause) {
    throw new Error('LocktenderInstrumentation needs the package @opentelemetry/api: `npm install @opentelemetry/api`', { cause })
  }
}

/** Calls code of a provider: what it throws is ignored here. */
function quietly<T>(code: () => T): T | undefined {
  try {
    return code()
  } catch {
    return undefined
  }
}

/**
 * OpenTelemetry: the metrics of locktender, and each acquire and each hold as a span. Give it to `registerInstrumentations` or to
 * `NodeSDK`, or call `enable` when the SDK is started. It needs the package `@opentelemetry/api`, and no other.
 *
 * Both spans are children of the span in which the caller asked for the lock, also of a hold that is released elsewhere. A provider that
 * throws changes nothing for a lock, and prints nothing. Acquires that begin before `enable` are in no span and no histogram.
 *
 * @example
 * ```js
 * const instrumentation = new LocktenderInstrumentation()
 * instrumentation.enable()   // or registerInstrumentations({ instrumentations: [instrumentation] })
 * await new Client('memory://example').withLock('orders:42', async () => 'paid')
 * instrumentation.disable()
 * ```
 */
export class LocktenderInstrumentation {
  /** The name of its tracer and its meter. */
  readonly instrumentationName = scope
  /** The version of locktender. */
  readonly instrumentationVersion = version
  readonly #api = apiOf()
  readonly #client: Client | undefined
  readonly #followed = new Map<number, Followed>()
  #tracers: otel.TracerProvider | undefined
  #meters: otel.MeterProvider | undefined
  #tracer: otel.Tracer | undefined
  #instruments: Instruments | undefined
  #enabled = false

  /** Throws an `Error` if `@opentelemetry/api` is not installed. */
  constructor({ client }: InstrumentationOptions = {}) {
    this.#client = client
  }

  /**
   * Begins to measure and to trace, with the global providers unless others were set. Does nothing if it has begun.
   *
   * @example
   * ```js
   * const instrumentation = new LocktenderInstrumentation({ client: new Client('memory://example') })
   * instrumentation.enable()
   * console.log(instrumentation.getConfig())   // { enabled: true }
   * instrumentation.disable()
   * ```
   */
  enable(): void {
    if (this.#enabled) return
    this.#enabled = true
    this.#makeTracer()
    this.#makeInstruments()
    follow(this.#follower)
  }

  /**
   * Ends measuring and tracing. What is acquired or held now gets no span.
   *
   * @example
   * ```js
   * const instrumentation = new LocktenderInstrumentation()
   * instrumentation.enable()
   * instrumentation.disable()
   * console.log(instrumentation.getConfig())   // { enabled: false }
   * ```
   */
  disable(): void {
    if (!this.#enabled) return
    this.#enabled = false
    unfollow(this.#follower)
    this.#followed.clear()
    quietly(() => this.#instruments?.end())
    this.#tracer = this.#instruments = undefined
  }

  /**
   * The provider of its tracer, instead of the global one.
   *
   * @example
   * ```js
   * const provider = { getTracer: () => { throw new Error('a provider that throws changes nothing') } }
   * const instrumentation = new LocktenderInstrumentation()
   * instrumentation.setTracerProvider(provider)   // or a NodeTracerProvider
   * ```
   */
  setTracerProvider(provider: { getTracer(name: string, version?: string): object }): void {
    this.#tracers = provider as otel.TracerProvider
    if (this.#enabled) this.#makeTracer()
  }

  /**
   * The provider of its meter, instead of the global one.
   *
   * @example
   * ```js
   * const provider = { getMeter: () => { throw new Error('a provider that throws changes nothing') } }
   * const instrumentation = new LocktenderInstrumentation()
   * instrumentation.setMeterProvider(provider)   // or a MeterProvider
   * ```
   */
  setMeterProvider(provider: { getMeter(name: string, version?: string): object }): void {
    this.#meters = provider as otel.MeterProvider
    if (this.#enabled) this.#makeInstruments()
  }

  /**
   * Enables or disables it, as `registerInstrumentations` may ask for.
   *
   * @example
   * ```js
   * new LocktenderInstrumentation().setConfig({ enabled: false })
   * ```
   */
  setConfig({ enabled }: { enabled?: boolean }): void {
    if (enabled === true) this.enable()
    if (enabled === false) this.disable()
  }

  /**
   * Whether it is enabled.
   *
   * @example
   * ```js
   * console.log(new LocktenderInstrumentation().getConfig())   // { enabled: false }
   * ```
   */
  getConfig(): { enabled: boolean } {
    return { enabled: this.#enabled }
  }

  #makeTracer(): void {
    this.#tracer = quietly(() => (this.#tracers ?? this.#api.trace).getTracer(scope, version))
  }

  #makeInstruments(): void {
    quietly(() => this.#instruments?.end())
    const read = this.#client ?? Metrics.ofAllClients
    this.#instruments = quietly(() => {
      const meter = (this.#meters ?? this.#api.metrics).getMeter(scope, version)
      return new Instruments(meter, () => read.metrics())
    })
  }

  readonly #follower: Follower = {
    begin: (number) => {
      quietly(() => this.#followed.set(number, new Followed(this.#api.context.active())))
    },
    record: ({ number, client, time, span, isLast }) => {
      const followed = this.#followed.get(number)
      if (isLast) this.#followed.delete(number)
      // The client of an acquire that has not begun is unknown.
      if (!followed || (this.#client && (client === null || emitterOf(client) !== this.#client))) return
      quietly(() => time && this.#instruments?.record(...time))
      quietly(() => span && this.#tracer && followed.span(this.#tracer, ...span))
    },
  }
}
