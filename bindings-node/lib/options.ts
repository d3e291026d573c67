import { isMainThread } from 'node:worker_threads'

import { checked, isAbortSignal, kindsOf } from './checks.js'
import type { Credentials, CredentialsProvider } from './credentials.js'
import { InvalidArgumentError } from './errors.js'

/**
 * Options of a lock. Times are milliseconds. A missing option has the client's default. A value out of bounds is
 * `INVALID_ARGUMENT`.
 */
export interface LockOptions {
  /**
   * The time for which the key lives without a renewal. Default 10 s; from 10 ms to 24 h, on a quorum at most the client's
   * `maxTtlMs`.
   */
  ttlMs?: number | undefined
  /**
   * The wait of an acquire, up to 366 days; `Infinity` without end (the default), 0 is one attempt. `tryAcquire`, `tryWithLock` and
   * the like ignore it.
   */
  waitMs?: number | undefined
  /** Whether the lock is renewed in the background, first at a third of the ttl. Default true. */
  renew?: boolean | undefined
  /**
   * The maximum time of a hold, counted from the grant. No renewal or extension goes beyond it. From 10 ms to 366 days; `Infinity`
   * is no end (the default).
   */
  maxHoldMs?: number | undefined
  /**
   * Whether all waiters with this option, in every process, are served strictly first come, first served. Default false: a newcomer
   * may be faster than a waiter, but no waiter starves. It is refused on a quorum, and of several locks at once.
   */
  fair?: boolean | undefined
  /**
   * The time for which the lock stays taken at least, counted from the grant, also after an earlier release: that keeps the key for the
   * rest. Default none; at most 24 h, on a quorum at most `maxTtlMs`. A job, a semaphore, a read lock and
   * several locks at once have none.
   */
  minHoldMs?: number | undefined
  /**
   * The time for which the key outlives the hold: a loss keeps others out for this long. A release frees it at once.
   * Default none; at most 24 h, on a quorum with the ttl at most `maxTtlMs`.
   */
  graceMs?: number | undefined
  /**
   * The category under which metrics and events count the lock: 1 to 128 bytes of UTF-8. Default: the name up to its first colon.
   * Choose few: a client counts 100 categories, and all further ones together as `other`.
   */
  category?: string | undefined
}

/** Options of a read lock: those of a lock, without `minHoldMs`. */
export type ReadLockOptions = Omit<LockOptions, 'minHoldMs'>

/** Options of several locks that are acquired together: those of a lock, without `fair` and `minHoldMs`. They hold for each lock. */
export type MultiLockOptions = Omit<LockOptions, 'fair' | 'minHoldMs'>

/** Options of a semaphore. Times are milliseconds. A missing option other than `permits` has the client's default. */
export interface SemaphoreOptions extends ReadLockOptions {
  /** The number of holders that the semaphore may have at once: it must be given. From 1 to 10,000. */
  permits: number
}

/**
 * Options of a job, and of its lock. Times are milliseconds. `waitMs` is how long a worker waits as a backup; `maxHoldMs` is the
 * longest time of an attempt.
 */
export interface JobOptions extends LockOptions {
  /**
   * The number of attempts that may begin before the job is dead. Default 3; from 1 to 10,000. The first worker that asks fixes it
   * for the job. A client that names another number gets a `warning` event.
   */
  maxAttempts?: number | undefined
  /**
   * The time after a failed attempt before the next one may begin: twice as long after each further failure, up to an hour. The server
   * counts it. A worker that died is followed at once when its lease ends. Default 1 s; at most 1 h.
   */
  retryDelayMs?: number | undefined
  /**
   * The time for which a job that is done or dead is remembered. A worker that asks later runs it again. Default 24 h; from 1 s to
   * 366 days.
   */
  retentionMs?: number | undefined
}

/**
 * Options of a job that runs once per scheduled time, and of its lock. Times are milliseconds. `maxAttempts` is 1 by default: a run
 * that fails or dies is not repeated.
 */
export interface CronJobOptions extends Omit<JobOptions, 'retentionMs'> {
  /**
   * The scheduled time: the time for which the scheduler planned this run, not the time at which it begins. So it doesn't matter
   * that the clocks of machines differ. A `Date`, or milliseconds since 1970; at most 5 minutes ahead of the server. Without it it
   * is now by this machine's clock, rounded down to a multiple of `everyMs`: one of the two must be given.
   */
  at?: Date | number | undefined
  /**
   * The time between two scheduled times, without `at`; multiples count from 1970-01-01 00:00 UTC. A timer that fires up to a
   * second too early counts for the time that was meant. Longer than the replicas may begin apart; from 1 s to 366 days.
   */
  everyMs?: number | undefined
  /** How long ago a scheduled time may be, by the server's clock, and still run; of a rounded one its end. Default 24 h; from 1 s to 366 days. */
  maxLatenessMs?: number | undefined
  /** What a scheduled time does while the work of an earlier one still runs: `skip` (the default) leaves it out, `wait` waits. */
  onOverlap?: 'skip' | 'wait' | undefined
}

/** Options of a failed attempt. */
export interface FailOptions {
  /** The time before the next attempt may begin, instead of the job's `retryDelayMs`; at most 1 h. */
  retryInMs?: number | undefined
  /** Whether another attempt may begin. Default true; false for a failure that no other attempt can help: the job is dead. */
  retry?: boolean | undefined
}

/** How far a hold is extended: to a time that remains at least, or by a time that is added. */
export interface ExtendOptions {
  /** The time that remains at least. From 10 ms to 24 h, on a quorum at most the client's `maxTtlMs`. */
  ttlMs?: number | undefined
  /** The time that is added to the present `remainingMs()`. The sum has the bounds of `ttlMs`. */
  byMs?: number | undefined
}

/** Options of a client, and defaults for its locks. Times are milliseconds, up to 366 days unless the option says otherwise. */
export interface ClientOptions extends LockOptions {
  /** The prefix of every lock's name. Default empty; at most 256 bytes of UTF-8, without NUL. */
  prefix?: string | undefined
  /**
   * The application, shown in owner values. Default: the environment's `LOCKTENDER_APP`, else none; at most 256 bytes of UTF-8,
   * without NUL.
   */
  app?: string | undefined
  /** The time limit for a connection, TLS included. Default 1 s; from 1 ms. */
  connectTimeoutMs?: number | undefined
  /** The time limit for an answer. Default 1 s, and 200 ms with more than one server; from 1 ms. */
  responseTimeoutMs?: number | undefined
  /**
   * The time for which an operation continues while no majority can be reached. Time while this process is stopped doesn't count.
   * Default 5 s; from 1 ms.
   */
  unavailableAfterMs?: number | undefined
  /**
   * On a quorum, the maximum remaining time of a hold. For so long a server that is new or lost its data must not vote. Default 60 s;
   * from 10 ms to 24 h. All clients of a quorum need the same value.
   */
  maxTtlMs?: number | undefined
  /**
   * What the client does when another node answers for its only server, such as a replica that was promoted. `confirm` (the
   * default): every hold is confirmed at once, and lost if the new node lacks it. `quarantine`: besides, the new node grants nothing
   * for `maxTtlMs`, and holds that it lacks are written there again. All clients of the server need it, with the same `maxTtlMs`.
   */
  failover?: 'confirm' | 'quarantine' | undefined
  /**
   * How many replicas of a server have to confirm a grant, and every extension, before it counts. Default 0; at most 100. While fewer
   * are connected, nothing is granted or extended. Name all replicas that a failover may choose.
   */
  minReplicas?: number | undefined
  /** How long a server waits for its `minReplicas` to confirm a write. Default 100 ms; from 1 ms to 366 days. */
  replicasTimeoutMs?: number | undefined
  /**
   * Gives the user and the password of every server, whose URL has none then. It is called before a connection, if what it gave last
   * has passed two thirds of its life, and at that time: then the new ones go to every live connection. The error that it throws or
   * rejects with is the `cause` of a `DeniedError`. Give its own waits a limit: there is one call at a time for each server. Default none.
   */
  credentials?: CredentialsProvider | undefined
  /** A PEM file with the certificate authorities to trust instead of the system's. Default none. */
  tlsCa?: string | undefined
  /** A PEM file with the client's certificate; it needs `tlsKey`. Default none. */
  tlsCert?: string | undefined
  /** A PEM file with the client certificate's key. Default none. */
  tlsKey?: string | undefined
  /**
   * The name that every server with TLS is asked for, and that its certificate must have. Default: the host of the URL, and for a node
   * that sentinels or a cluster announce the announced host.
   */
  tlsName?: string | undefined
  /**
   * Where the nodes are reached that sentinels or a cluster announce: `{ '10.0.0.1:6379': 'localhost:7001' }`. Default: where they
   * are announced.
   */
  addressMap?: Readonly<Record<string, string>> | undefined
  /** Whether holds are noted in the history of a single server or of a cluster, see `client.history()`. Default true. */
  history?: boolean | undefined
}

/** Ends an acquire, the begin of an attempt, or a campaign: it rejects with the signal's reason, and leaves no key. */
export interface AcquireOptions {
  /** The signal that ends it. Default none. */
  signal?: AbortSignal | undefined
}

/** @internal */
export function lockOptions(options: unknown, also: readonly string[] = []): LockOptions {
  return checked('lock', options, also)
}

/** @internal */
export function semaphoreOptions(options: unknown, also: readonly string[] = []): SemaphoreOptions {
  const instead = 'must be given in the options: { permits: 5 }'
  if (typeof options === 'number') throw InvalidArgumentError.of('permits', options, instead)
  const own: Partial<SemaphoreOptions> = checked('lock', options, also, { ...kindsOf('lock'), permits: 'count' })
  if (own.permits === undefined) throw InvalidArgumentError.of('permits', undefined, instead)
  return own as SemaphoreOptions
}

/** @internal */
export function failOptions(options: unknown): { retryInMs?: number; retry?: boolean } {
  const own: { retryInMs?: number; retry?: boolean } = checked('fail', options)
  if (own.retry === false && own.retryInMs !== undefined) {
    throw InvalidArgumentError.of('retryInMs', own.retryInMs, 'there is no other attempt with retry: false')
  }
  return own
}

/** @internal */
export function extendOptions(options: unknown): ExtendOptions {
  if (typeof options === 'number') throw InvalidArgumentError.of('options', options, 'write extend({ ttlMs }) or extend({ byMs }), in milliseconds')
  const own: ExtendOptions = checked('extend', options)
  if (own.ttlMs !== undefined && own.byMs !== undefined) {
    throw InvalidArgumentError.of('byMs', own.byMs, 'extend() takes ttlMs or byMs, not both')
  }
  return own
}

/** Credentials that a function of the program gave. @internal */
export function credentialsOptions(given: unknown): Credentials {
  const why = 'must give a password, or { user, password, expiresInMs }'
  const isList = Array.isArray(given) || ArrayBuffer.isView(given)
  if (typeof given !== 'object' || given === null || isList) throw InvalidArgumentError.of('credentials', typeof given, why)
  const own = checked<Partial<Credentials>>('credentials', given)
  if (own.password === undefined) throw InvalidArgumentError.of('credentials', 'no password', why)
  return own as Credentials
}

/** @internal */
export function clientOptions(options: unknown): ClientOptions {
  const own: ClientOptions = checked('client', options)
  const [app] = workersOwn('LOCKTENDER_APP')
  return own.app === undefined && app !== undefined ? { ...own, app } : own
}

/** The variables of a worker's own environment: a copy. The core reads the process's environment and does not see it. @internal */
export function workersOwn(variable: string): string[] {
  const value = isMainThread ? undefined : process.env[variable]
  return value ? [value] : []
}

/** The signal of an acquire's options, which are checked already. @internal */
export function signalOf(options: AcquireOptions | undefined): AbortSignal | undefined {
  const signal: unknown = options?.signal
  if (signal !== undefined && !isAbortSignal(signal)) throw InvalidArgumentError.of('signal', signal, 'must be an AbortSignal')
  return signal
}

/** The signal of the options of an acquire, the begin of an attempt or a campaign, that takes nothing else. @internal */
export function onlySignal(options: AcquireOptions | undefined, place: 'acquire' | 'begin' | 'campaign' = 'acquire'): AbortSignal | undefined {
  checked(place, options, ['signal'], {})
  return signalOf(options)
}
