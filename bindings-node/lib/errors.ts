import { inspect } from 'node:util'

import type * as native from '../native/index.js'
import { withCause } from './causes.js'

/** The failure of one server. */
export interface ServerFailure {
  /** The server's address, without credentials. */
  readonly server: string
  /** The kind of the failure, such as `refused`, `timeout`, `denied`, `quarantine`. */
  readonly kind: string
  /** The failure as one sentence. */
  readonly message: string
}

/** The page about errors, with a heading for each code. */
const PAGE = 'https://github.com/locktender/locktender/blob/main/docs/errors.md#'

/**
 * Every error of locktender. Branch on `code`, never on the message.
 *
 * @example
 * ```js
 * const lock = new Client('memory://example').lock('nightly', { waitMs: 0 })
 * const hold = await lock.acquire()
 * const error = await lock.acquire().catch((error) => error)
 * console.log(error instanceof LockError, error.name, error.code)   // true AcquireTimeoutError ACQUIRE_TIMEOUT
 * console.log(error.docsUrl.split('/').at(-1))   // errors.md#acquire_timeout
 * ```
 */
export class LockError extends Error {
  /** The code, the same in every language, such as `ACQUIRE_TIMEOUT`. */
  readonly code: string
  /** The lock's name, if the error is about one lock. */
  readonly lockName: string | null

  /** @internal */
  constructor(code: string, message: string, lockName: string | null = null) {
    super(message)
    this.code = code
    this.lockName = lockName
  }

  /** The name of the class. */
  override get name(): string {
    return this.constructor.name
  }

  /** The address of what the documentation says of the code: when it occurs, and what to do. */
  get docsUrl(): string {
    return PAGE + this.code.toLowerCase()
  }
}

/**
 * `ACQUIRE_TIMEOUT`: `waitMs` ended while the lock was held.
 *
 * @example
 * ```js
 * const client = new Client(new ScriptedServer('acquire: busy owner=web-3 ttl=500'))
 * const error = await client.lock('nightly', { waitMs: 0 }).acquire().catch((error) => error)
 * console.log(error instanceof AcquireTimeoutError, error.holder)   // true web-3
 * ```
 */
export class AcquireTimeoutError extends LockError {
  /**
   * The value of the key: the holder's readable owner value, or the value of another library. `null` for a job that no worker runs:
   * its next attempt may not begin yet.
   */
  readonly holder: string | null
  /** The remaining time of the key, in milliseconds; `Infinity` if it has no expiry. `null` with `holder`. */
  readonly remainingMs: number | null
  /** The number of waiters before this one; `null` if the server had not put it into the queue. */
  readonly rank: number | null

  /** @internal */
  constructor(failure: native.Failure) {
    super(failure.code, failure.message, failure.lockName)
    this.holder = failure.holder
    this.remainingMs = failure.remainingMs
    this.rank = failure.rank
  }
}

/**
 * The reason why a hold ended without its holder's action.
 *
 * - `expired`: validity ended before a majority confirmed a renewal.
 * - `missing`: the key no longer exists on the servers.
 * - `taken`: another client holds the key, or has held it since.
 * - `superseded`: the key has this hold's value, but a newer fence was issued.
 * - `conflict`: a key of the lock holds a value that no lock writes there.
 * - `max_hold`: `maxHoldMs` has passed.
 * - `closed`: the client was closed.
 * - `ended`, from `adopt`: the hold that was handed over has ended, or was adopted before.
 */
export type LossReason = 'expired' | 'missing' | 'taken' | 'superseded' | 'conflict' | 'max_hold' | 'closed' | 'ended'

/**
 * `LOCK_LOST`: the hold was lost.
 *
 * @example
 * ```js
 * const client = new Client(new ScriptedServer('always extend: gone'))
 * const work = client.withLock('report', async (hold) => { await hold.extend() })
 * const error = await work.catch((error) => error)
 * console.log(error instanceof LockLostError, error.reason)   // true missing
 * ```
 */
export class LockLostError extends LockError {
  /** The reason why it was lost. */
  readonly reason: LossReason
  /** The owner value of the holder now, or of one in between, if the servers show it. */
  readonly nextOwner: string | null
  /** The fence of that hold, if the servers show it. */
  readonly nextFence: number | null
  /** How long the holder continued after the end of its validity, in milliseconds, by this machine's clock. */
  readonly overrunMs: number
  /** The result of the callback of `withLock`, or of the work of a job, if it ran to its end. */
  declare result?: unknown

  /** @internal */
  constructor(failure: native.Failure) {
    super(failure.code, failure.message, failure.lockName)
    this.reason = failure.reason as LossReason
    this.nextOwner = failure.nextOwner
    this.nextFence = failure.nextFence
    this.overrunMs = failure.overrunMs
  }
}

/**
 * `JOB_DEAD`: the last attempt at the job failed, or its worker died. `job.reset()` lets it run again.
 *
 * @example
 * ```js
 * const job = new Client('memory://example').job('mail:7', { maxAttempts: 1 })
 * await (await job.begin()).fail('no such address')
 * const error = await job.begin().catch((error) => error)
 * console.log(error instanceof JobDeadError, error.attempts, error.lastError)   // true 1 no such address
 * ```
 */
export class JobDeadError extends LockError {
  /** The number of attempts. */
  readonly attempts: number
  /** The error of the last attempt, or that its worker died. */
  readonly lastError: string

  /** @internal */
  constructor(failure: native.Failure) {
    super(failure.code, failure.message, failure.lockName)
    this.attempts = failure.attempts ?? 0
    this.lastError = failure.lastError ?? ''
  }
}

/**
 * `NOT_HELD`: the handle was already released or handed over.
 *
 * @example
 * ```js
 * const hold = await new Client('memory://example').lock('nightly').acquire()
 * await hold.release()
 * const error = await hold.extend().catch((error) => error)
 * console.log(error instanceof NotHeldError, error.lockName)   // true nightly
 * ```
 */
export class NotHeldError extends LockError {}

class ServersError extends LockError {
  /** One error for each server that failed. */
  readonly servers: readonly ServerFailure[]

  /** @internal */
  constructor(failure: native.Failure) {
    super(failure.code, failure.message, failure.lockName)
    this.servers = failure.servers
  }
}

/**
 * `UNAVAILABLE`: no majority of the servers could be reached for `unavailableAfterMs`.
 *
 * @example
 * ```js
 * const client = new Client(new ScriptedServer('always any: fail refused'), { unavailableAfterMs: 50 })
 * const error = await client.lock('nightly').acquire().catch((error) => error)
 * console.log(error instanceof UnavailableError, error.servers[0].kind)   // true refused
 * ```
 */
export class UnavailableError extends ServersError {}

/**
 * `DENIED`: the servers refused the credentials, or a right that a lock needs.
 *
 * @example
 * ```js
 * const client = new Client(new ScriptedServer('always any: fail denied'))
 * const error = await client.lock('nightly').acquire().catch((error) => error)
 * console.log(error instanceof DeniedError, error.servers[0].kind)   // true denied
 * ```
 */
export class DeniedError extends ServersError {}

/**
 * `KEY_CONFLICT`: a key of the lock holds a value that no lock writes there, such as a list; locktender did not change it.
 *
 * @example
 * ```js
 * const client = new Client(new ScriptedServer('acquire: conflict type=hash'))
 * const error = await client.lock('nightly').acquire().catch((error) => error)
 * console.log(error instanceof KeyConflictError, error.lockName)   // true nightly
 * ```
 */
export class KeyConflictError extends LockError {}

/**
 * `INVALID_ARGUMENT`: an option, a name or a URL is wrong; the message names it and its value.
 *
 * @example
 * ```js
 * try {
 *   new Client('memory://example', { ttlMs: 1 })
 * } catch (error) {
 *   console.log(error instanceof InvalidArgumentError, error.code)   // true INVALID_ARGUMENT
 * }
 * ```
 */
export class InvalidArgumentError extends LockError {
  /** @internal */
  static of(argument: string, given: unknown, why: string): InvalidArgumentError {
    return new InvalidArgumentError('INVALID_ARGUMENT', `${argument}: ${why} (given: ${shown(given)})`)
  }
}

/** A value as text for a reader, made without running the value's own code. */
function shown(given: unknown): string {
  try {
    return inspect(given, { depth: 0, breakLength: Infinity, maxStringLength: 60, customInspect: false }).slice(0, 80)
  } catch {
    return typeof given
  }
}

/**
 * `CLOSED`: the client is closed.
 *
 * @example
 * ```js
 * const client = new Client('memory://example')
 * await client.close()
 * const error = await client.lock('nightly').acquire().catch((error) => error)
 * console.log(error instanceof ClosedError, error.code)   // true CLOSED
 * ```
 */
export class ClosedError extends LockError {}

/** `DEADLOCK`: the caller would wait for a lock that it holds itself. */
export class DeadlockError extends LockError {}

/** `FORKED`: the handle was inherited through a fork. */
export class ForkedError extends LockError {}

/** `INTERNAL`: a bug of locktender; please report it. */
export class InternalError extends LockError {}

const simple = new Map<string, new (code: string, message: string, lockName: string | null) => LockError>([
  ['NOT_HELD', NotHeldError],
  ['KEY_CONFLICT', KeyConflictError],
  ['INVALID_ARGUMENT', InvalidArgumentError],
  ['DEADLOCK', DeadlockError],
  ['CLOSED', ClosedError],
  ['FORKED', ForkedError],
])

const detailed = new Map<string, new (failure: native.Failure) => LockError>([
  ['ACQUIRE_TIMEOUT', AcquireTimeoutError],
  ['LOCK_LOST', LockLostError],
  ['JOB_DEAD', JobDeadError],
  ['UNAVAILABLE', UnavailableError],
  ['DENIED', DeniedError],
])

/** The error that the core describes. @internal */
export function errorOf(failure: native.Failure): LockError {
  const rich = detailed.get(failure.code)
  if (rich) return withCause(new rich(failure), failure.cause)
  return new (simple.get(failure.code) ?? InternalError)(failure.code, failure.message, failure.lockName)
}

/** The value, unless the core gave a failure instead. @internal */
export function valueOf<T extends object | string>(value: T | native.Failure): T {
  if (typeof value === 'object' && 'code' in value && 'message' in value) throw errorOf(value)
  return value as T
}
