import { tracingChannel } from 'node:diagnostics_channel'

import type * as otel from '@opentelemetry/api'

import type { Client } from './client.js'
import { followers, type EventKind, type Follower } from './events.js'
import { numberOf, started } from './follow.js'
import { Instruments, type Times } from './instruments.js'
import { Metrics } from './metrics.js'
import { Followed } from './spans.js'
import type { TraceContext } from './tracing.js'

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

/** Calls code of a provider: what it throws is nobody's business here. */
function quietly<T>(code: () => T): T | undefined {
  try {
    return code()
  } catch {
    return undefined
  }
}

/** What else the events of an acquire and its hold say about times. */
const measured: Partial<Record<EventKind, Times>> = { woken: 'handover', renewed: 'renewal', extended: 'renewal' }

const acquires = tracingChannel<unknown, TraceContext>('locktender:acquire')

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
  readonly #ofContexts = new WeakMap<object, Followed>()
  readonly #ofNumbers = new Map<number, Followed>()
  readonly #apps = new WeakMap<object, string>()
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
    followers.add(this.#follow)
    acquires.subscribe(this.#subscriber)
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
    acquires.unsubscribe(this.#subscriber)
    followers.delete(this.#follow)
    this.#ofNumbers.clear()
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

  readonly #subscriber = {
    start: (context: TraceContext) => {
      quietly(() => {
        const followed = new Followed(this.#api.context.active(), numberOf(context))
        this.#ofContexts.set(context, followed)
        this.#ofNumbers.set(followed.number, followed)
      })
    },
    end: (context: TraceContext) => {
      const hasBegun = started(context)
      const followed = this.#ofContexts.get(context)
      if (followed) followed.hasBegun = hasBegun
    },
    asyncStart: () => undefined,
    asyncEnd: (context: TraceContext) => this.#answered(context),
    error: () => undefined,
  }

  readonly #follow: Follower = (number, event, client) => {
    const followed = this.#ofNumbers.get(number)
    if (!followed) return
    if (this.#client && client !== this.#client) {
      this.#ofNumbers.delete(number)
      return
    }
    if (!followed.first && client) followed.app = this.#appOf(client as Client)
    const time = followed.note(event) ? 'hold' : measured[event.kind]
    if (time) this.#record(time, event.tookMs, followed)
    this.#settle(followed)
  }

  #answered(context: TraceContext): void {
    const followed = this.#ofContexts.get(context)
    if (!followed || this.#ofNumbers.get(followed.number) !== followed) return
    followed.answered(context)
    this.#settle(followed)
  }

  #settle(followed: Followed): void {
    if (followed.hasEnded && !followed.isTold) {
      followed.isTold = true
      if (followed.isCounted) this.#record('wait', followed.waitMs, followed)
      // Without an event it has not begun, and nobody knows of which client it was.
      if (followed.first || !this.#client) quietly(() => this.#tracer && followed.acquire(this.#tracer))
    }
    if (!followed.isOver) return
    this.#ofNumbers.delete(followed.number)
    quietly(() => this.#tracer && followed.hold(this.#tracer))
  }

  #record(time: Times, ms: number | null, { app, first }: Followed): void {
    quietly(() => this.#instruments?.record(time, ms, { app, family: first?.family ?? '', kind: first?.lockKind ?? '' }))
  }

  /** The application of a client, as its metrics name it. */
  #appOf(client: Client): string {
    const known = this.#apps.get(client)
    if (known !== undefined) return known
    const app = [...client.metrics()].find(({ name }) => name === 'locktender_warnings_total')?.samples[0]?.labels['app'] ?? ''
    this.#apps.set(client, app)
    return app
  }
}
