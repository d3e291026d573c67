import { channel } from 'node:diagnostics_channel'
import type { EventEmitter } from 'node:events'

import type { LossReason } from './errors.js'
import { callGuest } from './guest.js'

/** What can happen to a lock or a server. */
export type EventKind =
  | 'attempt'
  | 'busy'
  | 'queued'
  | 'notified'
  | 'acquired'
  | 'woken'
  | 'timed_out'
  | 'cancelled'
  | 'failed'
  | 'renewed'
  | 'extended'
  | 'released'
  | 'handed_over'
  | 'expired'
  | 'lost'
  | 'race'
  | 'server_failed'
  | 'server_recovered'
  | 'warning'

/** One event. Fields that don't apply are `null`. */
export interface LockEvent {
  readonly kind: EventKind
  readonly lockName: string | null
  /** The lock's whole key on the servers: the prefix and the name. */
  readonly key: string | null
  /** Our owner value. */
  readonly owner: string | null
  readonly fence: number | null
  /** The value of whoever holds the key instead. */
  readonly rival: string | null
  /** The fence of the latest hold that came between, if the servers show it. */
  readonly rivalFence: number | null
  /** Why the lock was lost. */
  readonly reason: LossReason | null
  /**
   * The wait of an acquire however it ended, the hold of a release or a hand-over, the overrun of a race; for `woken` since the waiter
   * was told.
   */
  readonly tookMs: number | null
  /** How many wait before us, for `queued`. */
  readonly rank: number | null
  readonly server: string | null
  readonly message: string | null
}

/** The events of a client, by name: each kind, and `event` for all of them. */
export type ClientEvents = { [Kind in EventKind]: [event: LockEvent] } & { event: [event: LockEvent] }

const rare: readonly string[] = ['failed', 'expired', 'lost', 'race', 'server_failed', 'warning'] satisfies EventKind[]

/** Whether events of this name come out of the core only once somebody listens: they cost every acquire something. @internal */
export function ofNormalLife(name: string): boolean {
  return !rare.includes(name)
}

/** Every client's events, for `diagnostics_channel.subscribe('locktender', …)`. @internal */
export const diagnostics = channel('locktender')

const emitters = new Map<number, WeakRef<EventEmitter<ClientEvents>>>()
const forgotten = new FinalizationRegistry<number>((client) => emitters.delete(client))

/** Has the events of client `number` emitted by `emitter`, for as long as it lives. @internal */
export function enrol(number: number, emitter: EventEmitter<ClientEvents>): void {
  emitters.set(number, new WeakRef(emitter))
  forgotten.register(emitter, number)
}

function isHeard(emitter: EventEmitter<ClientEvents> | undefined): boolean {
  if (diagnostics.hasSubscribers) return true
  return emitter !== undefined && emitter.listenerCount('warning') + emitter.listenerCount('event') > 0
}

/**
 * Tells each of those that listen; none is passed over because another one throws. An acquire that waits for its own client may
 * wait for ever, so that is a warning of the process where nobody listens. @internal
 */
export function deliver(client: number, event: LockEvent, selfWait: boolean): void {
  const emitter = emitters.get(client)?.deref()
  if (selfWait && !isHeard(emitter)) {
    const warning = { type: 'LocktenderWarning', code: 'LOCKTENDER_SELF_WAIT' }
    callGuest(() => process.emitWarning(event.message ?? '', warning))
  }
  if (diagnostics.hasSubscribers) callGuest(() => diagnostics.publish(event))
  callGuest(() => emitter?.emit(event.kind, event))
  callGuest(() => emitter?.emit('event', event))
}
