import { channel } from 'node:diagnostics_channel'
import type { EventEmitter } from 'node:events'

import type { Recorded } from '../native/index.js'
import { addon } from './addon.js'
import { InvalidArgumentError, type LossReason } from './errors.js'
import { callGuest } from './guest.js'

/**
 * The kinds of events of a lock or a server.
 *
 * - `round`: an acquire starts a round.
 * - `busy`: the lock is held; the acquire waits.
 * - `not_acquired`: the lock is held, and the acquire was a single attempt: it ends.
 * - `queued`: the acquire waits in the queue; see `rank`.
 * - `notified`: a waiter was notified that the lock is free or kept for it.
 * - `acquired`: this client has the lock; `notifiedAgoMs` says how long ago the waiter was notified.
 * - `timed_out`: the wait of an acquire is over, and the lock is still held.
 * - `cancelled`: an acquire was cancelled by its caller, or its client was closed.
 * - `acquire_failed`: an acquire failed; see `message`.
 * - `renewed`: a renewal was confirmed.
 * - `extended`: an extension by the user was confirmed.
 * - `released`: the lock was released.
 * - `handed_over`: the holder has handed the lock over: another process may adopt it.
 * - `expired`: the lock was released after its key had expired.
 * - `lost`: the hold was lost; see `reason`.
 * - `overlapped`: an overlap is proved: another hold began before this client released the lock.
 * - `dropped`: the handle of a hold was dropped without a release: its key expires by itself.
 * - `done`: a job is done: this client's attempt did it (with its `owner`), or an earlier one (without).
 * - `retry`: an attempt of a job failed, and another one may follow; see `message`.
 * - `dead`: a job is dead: its last attempt failed or died; see `message`.
 * - `skipped`: nothing runs for a job's scheduled time; see `message`: `running`, `missed`, `too_late` or `too_early`.
 * - `leader`: an observer of an election has seen who leads, or that it changed: `holder` leads, in term `holderFence`. Without them see
 *   `message`: there is no leader, or that is unknown.
 * - `force_released`: this client has ended a hold that is another's, by `forceRelease`; see `holder`.
 * - `server_failed`: a server does not answer, or gives a wrong answer.
 * - `server_recovered`: the server answers again.
 * - `failed_over`: another node answers for a server, or its node was restarted. Locks that were granted last may be lost.
 * - `warning`: something that a person should check; see `message`.
 */
export type EventKind =
  | 'round'
  | 'busy'
  | 'not_acquired'
  | 'queued'
  | 'notified'
  | 'acquired'
  | 'timed_out'
  | 'cancelled'
  | 'acquire_failed'
  | 'renewed'
  | 'extended'
  | 'released'
  | 'handed_over'
  | 'expired'
  | 'lost'
  | 'overlapped'
  | 'dropped'
  | 'done'
  | 'retry'
  | 'dead'
  | 'skipped'
  | 'leader'
  | 'force_released'
  | 'server_failed'
  | 'server_recovered'
  | 'failed_over'
  | 'warning'

/** One event. Fields that don't apply are `null`. */
export interface LockEvent {
  /** What happened. */
  readonly kind: EventKind
  /** The lock's name, without the client's prefix. */
  readonly lockName: string | null
  /**
   * The names of all locks that are acquired together, for an event of one of them. For one of the acquire of all `lockName` has all
   * names, with commas between them.
   */
  readonly names: readonly string[] | null
  /** The lock's whole key on the servers: the prefix and the name. */
  readonly key: string | null
  /** What the lock is for. */
  readonly lockKind: 'lock' | 'job' | 'cron_job' | 'election' | 'semaphore' | 'read_lock' | 'multi_lock' | null
  /** The lock's category: see `LockOptions`. */
  readonly category: string | null
  /** This client's owner value. */
  readonly owner: string | null
  /** The fence of this hold. */
  readonly fence: number | null
  /**
   * The owner value of the holder, for `busy`, `not_acquired`, `timed_out` and a `warning`; of the leader, for `leader`; of the hold that
   * was ended, for `force_released`.
   */
  readonly holder: string | null
  /** The fence of that hold, if the servers show it. */
  readonly holderFence: number | null
  /**
   * The owner value of the next holder, for `lost`, `overlapped` and a `warning`: the value in the key, or what the history shows.
   */
  readonly nextOwner: string | null
  /** The fence of that hold, if the servers show it. */
  readonly nextFence: number | null
  /** The owner value of the last attempt of a job, for `done`, `dead` and `skipped`. */
  readonly lastOwner: string | null
  /** The reason why the lock was lost. */
  readonly reason: LossReason | null
  /**
   * The wait of an acquire and the duration of a hold, with any end, or the round trip of a renewal or an extension, in milliseconds.
   */
  readonly tookMs: number | null
  /** For `acquired`, if the acquire waited: how many milliseconds ago it was notified that the lock is free or kept for it. */
  readonly notifiedAgoMs: number | null
  /**
   * For `expired`, `lost` and `overlapped`: how long after the end of its validity the hold was released, or its loss was noticed. In
   * milliseconds.
   */
  readonly overrunMs: number | null
  /** For `renewed` and `extended`: the validity that was left when the confirmation came, in milliseconds. */
  readonly remainingMs: number | null
  /** The number of waiters before this one, for `queued`. */
  readonly rank: number | null
  /** The number of the attempt, of a job. */
  readonly attempt: number | null
  /** The server's address, for `server_failed`, `server_recovered` and `failed_over`, and for a `warning` about one. */
  readonly server: string | null
  /** The address of the node that answers now, for `failed_over`. */
  readonly address: string | null
  /** The replication id of the node before, for `failed_over`. */
  readonly oldReplicationId: string | null
  /** The replication id of the node that answers now, for `failed_over`. */
  readonly newReplicationId: string | null
  /** One more sentence. */
  readonly message: string | null
  /** When it happened, by this machine's clock: milliseconds since 1970. */
  readonly atMs: number
}

/** The events of a client, by name: each kind, and `event` for all of them. */
export type ClientEvents = { [Kind in EventKind]: [event: LockEvent] } & { event: [event: LockEvent] }

const rare: readonly string[] = ['acquire_failed', 'expired', 'lost', 'overlapped', 'dropped', 'retry', 'dead', 'force_released', 'server_failed', 'failed_over', 'warning'] satisfies EventKind[]

/** Whether the core sends events of this name only if there are listeners: they cost every acquire some time. @internal */
export function ofNormalLife(name: string): boolean {
  return !rare.includes(name)
}

/** The events of every `EventEmitter`: of its listeners, and `error`, for which `once` of `node:events` listens, too. */
const ofEachEmitter: readonly (string | symbol)[] = ['newListener', 'removeListener', 'error']

/** Whether it is an event of a client. Throws `InvalidArgumentError` for one that never comes. @internal */
export function isEvent(name: string | symbol): name is string {
  if (typeof name === 'symbol' || ofEachEmitter.includes(name)) return false
  const instead = addon.insteadOfEvent(name)
  if (instead !== null) throw InvalidArgumentError.of('event', name, instead)
  return true
}

/** Every client's events, for `diagnostics_channel.subscribe('locktender', …)`. @internal */
export const diagnostics = channel('locktender')

/** An instrumentation, for which acquires are followed: it is called where one begins, and for what is to be recorded of it. @internal */
export interface Follower {
  begin(number: number): void
  record(record: Recorded): void
}

/** The instrumentations. They throw nothing. @internal */
export const followers = new Set<Follower>()

const emitters = new Map<number, WeakRef<EventEmitter>>()
const forgotten = new FinalizationRegistry<number>((client) => emitters.delete(client))

/** Lets `emitter` emit the events of client `number`, for as long as it lives. @internal */
export function enrol(number: number, emitter: EventEmitter): void {
  emitters.set(number, new WeakRef(emitter))
  forgotten.register(emitter, number)
}

/** The client with this number, if it lives. @internal */
export function emitterOf(number: number): EventEmitter | undefined {
  return emitters.get(number)?.deref()
}

function isHeard(emitter: EventEmitter | undefined, kinds: readonly EventKind[]): boolean {
  if (diagnostics.hasSubscribers) return true
  return emitter !== undefined && [...kinds, 'event' as const].some((kind) => emitter.listenerCount(kind) > 0)
}

/** The code under which an event is a warning of the process, because nobody listens. */
function codeUnheard(emitter: EventEmitter | undefined, event: LockEvent, isSelfWait: boolean): string | null {
  if (isSelfWait && !isHeard(emitter, ['warning'])) return 'LOCKTENDER_DEADLOCK'
  // Only the warning about a loss that the work never asked about has a reason.
  const isUnnoticed = event.kind === 'warning' && event.reason !== null
  return isUnnoticed && !isHeard(emitter, ['warning', 'lost']) ? 'LOCKTENDER_LOST_UNNOTICED' : null
}

/**
 * Passes an event to every listener, also if another listener throws. An acquire that waits for its own client may wait without end: this
 * becomes a warning of the process if there is no listener, and so does a loss that the work never asked about. @internal
 */
export function deliver(client: number, event: LockEvent, isSelfWait: boolean): void {
  const emitter = emitterOf(client)
  const code = codeUnheard(emitter, event, isSelfWait)
  if (code) callGuest(() => process.emitWarning(event.message ?? '', { type: 'LocktenderWarning', code }))
  if (diagnostics.hasSubscribers) callGuest(() => diagnostics.publish(event))
  callGuest(() => emitter?.emit(event.kind, event))
  callGuest(() => emitter?.emit('event', event))
}
