// What users write beside other packages, with the types that those need. Compiled by types.test.mjs; never run.

import { tracingChannel } from 'node:diagnostics_channel'

import { metrics, trace } from '@opentelemetry/api'
import { registerInstrumentations } from '@opentelemetry/instrumentation'
import { Cluster, Redis } from 'ioredis'
import { Client } from 'locktender'
import { LocktenderInstrumentation } from 'locktender/opentelemetry'
import type { TraceContext, TracedOperation } from 'locktender'

export function uses(client: Client): void {
  Client.fromIoredis(new Redis(), { prefix: 'p:' })
  Client.fromIoredis(new Cluster([{ host: 'localhost' }]))
  const instrumentation = new LocktenderInstrumentation({ client })
  instrumentation.setTracerProvider(trace.getTracerProvider())
  instrumentation.setMeterProvider(metrics.getMeterProvider())
  registerInstrumentations({ instrumentations: [instrumentation] })
  tracingChannel<string, TraceContext>('locktender:acquire').start.subscribe((context) => (context as TraceContext).operation satisfies TracedOperation)
}
