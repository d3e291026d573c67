import { tracingChannel } from 'node:diagnostics_channel'

import { LockError } from './errors.js'
import { followers, type Follower } from './events.js'
import { queue } from './queue.js'
import type { TraceContext } from './tracing.js'

const acquires = tracingChannel<unknown, TraceContext>('locktender:acquire')

/** The numbers of acquires that are followed. No acquire has 0. */
const numbers = new WeakMap<TraceContext, number>()
let last = 0

const subscriber = {
  start: (context: TraceContext) => {
    const number = (last += 1)
    numbers.set(context, number)
    for (const follower of followers) follower.begin(number)
    queue.follow(number, context.lockName)
  },
  end: (context: TraceContext) => queue.started(numbers.get(context) ?? 0),
  asyncStart: () => undefined,
  asyncEnd: (context: TraceContext) => {
    const { error } = context
    const failure: [string, string] | undefined = error instanceof LockError ? [error.code, error.message] : undefined
    const left = error !== undefined && !failure
    for (const record of queue.answered(numbers.get(context) ?? 0, failure, left)) {
      for (const follower of followers) follower.record(record)
    }
  },
  error: () => undefined,
}

/** Begins to follow acquires for an instrumentation. @internal */
export function follow(follower: Follower): void {
  if (followers.size === 0) acquires.subscribe(subscriber)
  followers.add(follower)
}

/** Ends that. @internal */
export function unfollow(follower: Follower): void {
  followers.delete(follower)
  if (followers.size > 0) return
  acquires.unsubscribe(subscriber)
  queue.unfollow()
}
