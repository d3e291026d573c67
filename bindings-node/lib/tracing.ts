import { tracingChannel, type TracingChannel } from 'node:diagnostics_channel'

/** The traced operations: subscribe to `diagnostics_channel.tracingChannel('locktender:acquire')` and so on. */
export type TracedOperation = 'acquire' | 'extend' | 'release'

/** The context that subscribers of a tracing channel get: the same object from the start to the end of one operation. */
export interface TraceContext {
  /** The operation; `acquire` also for `tryAcquire`, the bodies, `adopt`, `downgrade`, a campaign, and the begin of an attempt of a job. */
  readonly operation: TracedOperation
  /** The lock's name, without the client's prefix; of several locks all names, with commas between them. */
  readonly lockName: string
  /** The `Hold` or `MultiHold` (or `null`) of an acquire, the `Release` of a release, once there is one. */
  result?: unknown
  /** The error, if the operation failed. */
  error?: unknown
}

const channels: Record<TracedOperation, TracingChannel<unknown, TraceContext>> = {
  acquire: tracingChannel('locktender:acquire'),
  extend: tracingChannel('locktender:extend'),
  release: tracingChannel('locktender:release'),
}

/** Does `work`, and notifies the subscribers. @internal */
export function traced<T>(operation: TracedOperation, lockName: string, work: () => Promise<T>): Promise<T> {
  const channel = channels[operation]
  if (!isHeard(channel)) return work()
  return channel.tracePromise(work, { operation, lockName }) as unknown as Promise<T>
}

function isHeard({ start, end, asyncStart, asyncEnd, error }: TracingChannel<unknown, TraceContext>): boolean {
  return start.hasSubscribers || end.hasSubscribers || asyncStart.hasSubscribers || asyncEnd.hasSubscribers || error.hasSubscribers
}
