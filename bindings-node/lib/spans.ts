import type * as otel from '@opentelemetry/api'

import type { Span } from '../native/index.js'

// SpanKind and SpanStatusCode of the API.
const [INTERNAL, CLIENT] = [0, 2]
const ERROR = 2

/** An acquire and its hold. @internal */
export class Followed {
  /** An acquire begins within the span of `parent`. */
  constructor(private readonly parent: otel.Context) {}

  /** Makes a span that has ended. */
  span(tracer: otel.Tracer, ...[name, begunMs, endedMs, attributes, error, event]: Span): void {
    const kind = name === 'hold' ? INTERNAL : CLIENT
    const span = tracer.startSpan(name, { kind, startTime: begunMs, attributes }, this.parent)
    if (event) span.addEvent(...event, endedMs)
    if (typeof error === 'string') span.setStatus({ code: ERROR, message: error })
    span.end(endedMs)
  }
}
