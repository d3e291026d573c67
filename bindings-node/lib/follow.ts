import { SELF_WAIT } from './events.js'
import { queue } from './queue.js'

// Smaller numbers are no traces.
let last = SELF_WAIT

/** An acquire that is being started. */
interface Starting {
  readonly number: number
  /** The number of the acquire in whose start it is. */
  readonly around: number
  /** Whether the core has begun it, once that is known. */
  hasBegun?: boolean
}

const starting = new WeakMap<object, Starting>()

/** The number of the acquire that begins with this context of its tracing channel: all its events will have it. @internal */
export function numberOf(context: object): number {
  const known = starting.get(context)
  if (known) return known.number
  last += 1
  starting.set(context, { number: last, around: queue.traceNext(last) })
  return last
}

/** The acquire was started: what begins next is another one. Whether the core has begun it. @internal */
export function started(context: object): boolean {
  const known = starting.get(context)
  if (!known) return false
  // Only the first who asks takes back a number that no acquire took.
  return (known.hasBegun ??= queue.traceNext(known.around) !== known.number)
}
