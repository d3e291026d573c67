import type * as otel from '@opentelemetry/api'

import { LockError } from './errors.js'
import type { LockEvent } from './events.js'
import type { TraceContext } from './tracing.js'

// SpanKind and SpanStatusCode of the API.
const [INTERNAL, CLIENT] = [0, 2]
const ERROR = 2

/** What the caller of an acquire got. */
interface Answer {
  readonly lockName: string
  readonly error: unknown
  readonly atMs: number
}

/** An acquire and its hold, as far as their events have come. Their spans are made when they end: none is ever left open. @internal */
export class Followed {
  readonly #parent: otel.Context
  readonly #begunMs = Date.now()
  #attempts = 0
  /** The event that ended the acquire. */
  #ending: LockEvent | undefined
  #granted: LockEvent | undefined
  /** How the hold ended. */
  #over: LockEvent | undefined
  #answer: Answer | undefined
  /** The first event: it has what all of them have. */
  first: LockEvent | undefined
  /** The application. */
  app = ''
  /** Whether the core has begun it. */
  hasBegun = false
  /** Whether its acquire's span was made. */
  isTold = false

  /** The number that its events have. */
  readonly number: number

  /** An acquire begins within the span of `parent`. */
  constructor(parent: otel.Context, number: number) {
    this.#parent = parent
    this.number = number
  }

  /** Takes an event, and says whether it ended the hold. */
  note(event: LockEvent): boolean {
    this.first ??= event
    switch (event.kind) {
      case 'attempt':
        this.#attempts += 1
        return false
      case 'acquired':
        this.#granted = this.#ending = event
        return false
      case 'not_acquired':
      case 'timed_out':
      case 'cancelled':
      case 'failed':
      case 'skipped':
      case 'done':
      case 'dead':
        if (!this.#granted) this.#ending = event
        return false
      case 'released':
      case 'handed_over':
      case 'expired':
      case 'lost':
      case 'race':
      case 'dropped':
        if (!this.#granted || this.#over) return false
        this.#over = event
        return true
      default:
        return false
    }
  }

  /** Takes the answer that the caller got. */
  answered({ lockName, error }: TraceContext): void {
    this.#answer = { lockName, error, atMs: Date.now() }
  }

  /** Whether the acquire has ended. Of one that its caller left, the core says how it ended, if it had begun. */
  get hasEnded(): boolean {
    if (!this.#answer) return false
    const { error } = this.#answer
    const left = error !== undefined && !(error instanceof LockError)
    return !left || !this.hasBegun || this.#ending !== undefined
  }

  /** Whether the acquire has ended, and so has its hold, if there was one. */
  get isOver(): boolean {
    return this.hasEnded && (this.#granted === undefined || this.#over !== undefined)
  }

  /** Whether a client's metrics count the acquire: not one that was refused before it asked, whose end took no time. */
  get isCounted(): boolean {
    return typeof this.#ending?.tookMs === 'number'
  }

  /** How long the acquire took, in milliseconds. */
  get waitMs(): number {
    return this.#ending?.tookMs ?? (this.#answer?.atMs ?? Date.now()) - this.#begunMs
  }

  /** Gives the acquire's span, once it has ended. */
  acquire(tracer: otel.Tracer): void {
    if (!this.#answer) return
    const { lockName, error, atMs } = this.#answer
    const isError = error instanceof LockError
    // Without an event it has not begun: what isn't ours is the reason of the caller's own signal.
    const attributes = this.#attributes(lockName, this.#ending?.kind ?? (isError ? 'failed' : 'cancelled'))
    attributes['locktender.attempts'] = this.#attempts
    attributes['locktender.wait'] = this.waitMs / 1e3
    if (isError) attributes['error.type'] = error.code
    const span = tracer.startSpan('acquire', { kind: CLIENT, startTime: this.#begunMs, attributes }, this.#parent)
    if (isError) span.setStatus({ code: ERROR, message: error.message })
    span.end(this.#ending?.atMs ?? atMs)
  }

  /** Gives the hold's span, if there was one and it has ended. */
  hold(tracer: otel.Tracer): void {
    const [from, over] = [this.#granted, this.#over]
    if (!from || !over) return
    const attributes = this.#attributes(from.lockName, over.kind)
    const isError = over.kind === 'lost' || over.kind === 'race'
    if (isError) attributes['error.type'] = over.kind === 'lost' ? 'LOCK_LOST' : 'race'
    if (over.reason !== null) attributes['locktender.reason'] = over.reason
    const span = tracer.startSpan('hold', { kind: INTERNAL, startTime: from.atMs, attributes }, this.#parent)
    if (isError) {
      span.addEvent(over.kind, eventAttributes(over), over.atMs)
      span.setStatus({ code: ERROR, message: over.message ?? over.reason ?? over.kind })
    }
    span.end(over.atMs)
  }

  #attributes(lockName: string | null, end: string): otel.Attributes {
    const attributes: otel.Attributes = { 'locktender.lock': lockName ?? '', 'locktender.end': end }
    const [first, granted] = [this.first, this.#granted]
    if (first) {
      attributes['locktender.app'] = this.app
      if (first.key !== null) attributes['locktender.key'] = first.key
      if (first.lockKind !== null) attributes['locktender.kind'] = first.lockKind
      if (first.family !== null) attributes['locktender.family'] = first.family
    }
    if (granted?.owner) attributes['locktender.owner'] = granted.owner
    if (granted?.fence) attributes['locktender.fence'] = granted.fence
    if (granted?.attempt) attributes['locktender.job.attempt'] = granted.attempt
    return attributes
  }
}

function eventAttributes({ reason, rival, rivalFence, overrunMs, message }: LockEvent): otel.Attributes {
  const attributes: otel.Attributes = {}
  if (reason !== null) attributes['locktender.reason'] = reason
  if (rival !== null) attributes['locktender.rival'] = rival
  if (rivalFence !== null) attributes['locktender.rival_fence'] = rivalFence
  if (overrunMs !== null) attributes['locktender.overrun'] = overrunMs / 1e3
  if (message !== null) attributes['locktender.message'] = message
  return attributes
}
