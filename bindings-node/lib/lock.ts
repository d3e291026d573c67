import type * as native from '../native/index.js'
import { addon } from './addon.js'
import { checked, text as textOf } from './checks.js'
import type { Made } from './core.js'
import { NotHeldError } from './errors.js'
import { Hold } from './hold.js'
import { onlySignal, type AcquireOptions } from './options.js'
import { outcome, outcomeUnless, resultOf, type Granted } from './queue.js'
import { traced } from './tracing.js'
import { answerWords } from './words.js'

/** The fields of a locktender client's owner value. */
export interface OwnerFields {
  /** The application, if the holder has named one. */
  readonly app: string | null
  /** The holder's host name. */
  readonly host: string | null
  /** The holder's process id. */
  readonly pid: number | null
  /** The time at which the holder asked, by its own clock. */
  readonly at: Date | null
  /** The unique id of the acquisition. */
  readonly id: string | null
}

/** The result of an inspection. */
export interface LockInfo {
  /** The lock's name, without the client's prefix. */
  readonly name: string
  /**
   * The holder's owner value, or the value that another library wrote, up to its first 1,024 bytes. If several hold the lock, that of the
   * holder whose hold ends last.
   */
  readonly owner: string
  /** The value's fields; `null` if another library wrote it. */
  readonly fields: OwnerFields | null
  /** The remaining time of the key; `Infinity` if it has no expiry. */
  readonly remainingMs: number
  /** The fence of the hold if its value shows it, else `null`: on one server mostly from the first renewal on. On a quorum the last one issued. */
  readonly fence: number | null
  /** The number of holders: 1, but for a semaphore and for readers. */
  readonly holderCount: number
  /** The owner values of the holders, the first hundred whose holds end. */
  readonly holders: readonly string[]
  /** The free permits of a semaphore; `null` for any other lock. */
  readonly available: number | null
  /** The number of waiters in the queue. The waiters of one process count as one unless the lock is a fair one. */
  readonly waiters: number
  /** The first hundred waiters, in the order of the queue, each with the readable fields of its process. */
  readonly queue: readonly string[]
}

/** A hold that its holder has noted in the history. */
export interface Grant {
  /** The lock's name, without the client's prefix. */
  readonly name: string
  /** The owner value. */
  readonly owner: string
  /** The fields of the owner value. */
  readonly fields: OwnerFields | null
  /** The fencing token. */
  readonly fence: number
  /** When the hold began, by the server's clock. */
  readonly began: Date
  /** When it ended, by the server's clock; `null` if it continues, or if its end wasn't noted. */
  readonly ended: Date | null
  /** Its state when it was noted last. */
  readonly state: 'holds' | 'released' | 'lost'
  /** Whether others may have had the lock at the same time: it is the hold of a reader, or of a permit. */
  readonly isShared: boolean
}

/** A hold of a client. */
export interface HoldInfo {
  /** The lock's name, without the client's prefix. */
  readonly name: string
  /** What the lock is for. */
  readonly kind: 'lock' | 'job' | 'cron_job' | 'election' | 'semaphore' | 'read_lock' | 'multi_lock'
  /** The owner value: the value of the key on the servers begins with it. */
  readonly owner: string
  /** The fencing token. */
  readonly fence: number
  /** How long ago the lock was granted. */
  readonly heldForMs: number
  /** How long the lock is guaranteed to be held if nothing renews it. */
  readonly remainingMs: number
}

/**
 * A lock's name for any text: an empty one, one that is too long, one with `{`, `}`, NUL or `:~lt:`.
 *
 * Different texts get different names. Every language gives a text the same name. A character that a name can't have is written as
 * `%XX`, and so is `%`. If the name of a text would be too long, it consists of the text's beginning and the SHA-256 of the whole
 * text. Use this function for all texts of a kind or for none: `safeName('50%')` is not the lock `50%`.
 *
 * @example
 * ```js
 * const lock = new Client('memory://example').lock(safeName('50% {off}'))
 * console.log(lock.name)   // 50%25 %7Boff%7D
 * ```
 */
export function safeName(text: string): string {
  return addon.safeName(textOf('text', text))
}

/** What acquires. */
type Acquiring = Pick<native.Lock, 'acquire' | 'tryAcquire'>

/** Makes a handle of what was granted. */
type ToHold<H> = (client: object, granted: Granted) => H

/** Acquires one lock or several. @internal */
export async function acquired<H>(open: () => Made<Acquiring>, options: AcquireOptions | undefined, toHold: ToHold<H>): Promise<H> {
  const signal = onlySignal(options)
  const { core, client } = open()
  return toHold(client, resultOf<Granted>(await outcomeUnless(signal, () => core.acquire())))
}

/** Tries once to acquire one lock or several. @internal */
export async function tried<H>(open: () => Made<Acquiring>, options: AcquireOptions | undefined, toHold: ToHold<H>): Promise<H | null> {
  const signal = onlySignal(options)
  const { core, client } = open()
  const granted = resultOf<Granted | undefined>(await outcomeUnless(signal, () => core.tryAcquire()))
  return granted ? toHold(client, granted) : null
}

/**
 * A lock: a name and options. It does no I/O, and may be shared and used again, also at the same time.
 *
 * @example
 * ```js
 * const nightly = new Client('memory://example').lock('nightly', { ttlMs: 30_000, waitMs: 5_000 })
 * const hold = await nightly.acquire()
 * await hold.release()
 * ```
 */
export class Lock {
  readonly #made: () => Made
  /** The name, without the client's prefix. */
  readonly name: string

  /** @internal */
  constructor(name: string, made: () => Made) {
    this.name = name
    this.#made = made
  }

  readonly #hold = (client: object, granted: Granted): Hold => new Hold(this.name, client, granted)

  /**
   * Acquires the lock, and waits for it at most `waitMs`. Aborting `signal` ends the wait, rejects with the signal's reason and
   * leaves no key. After the grant the signal has no effect.
   *
   * Rejects with `AcquireTimeoutError`, `UnavailableError`, `DeniedError`, `KeyConflictError` or `ClosedError`.
   *
   * @example
   * ```js
   * const hold = await new Client('memory://example').lock('orders:42').acquire({ signal: AbortSignal.timeout(5_000) })
   * try {
   *   console.log(hold.isValid())   // true
   * } finally {
   *   await hold.release()
   * }
   * ```
   */
  acquire(options?: AcquireOptions): Promise<Hold> {
    return traced('acquire', this.name, () => acquired(this.#made, options, this.#hold))
  }

  /**
   * Tries once to acquire the lock: `null` if it is busy. It ignores `waitMs`. Rejects as `acquire` does, except for a busy lock.
   *
   * @example
   * ```js
   * const nightly = new Client('memory://example').lock('nightly')
   * const hold = await nightly.tryAcquire()
   * console.log(await nightly.tryAcquire())   // null
   * await hold?.release()
   * ```
   */
  tryAcquire(options?: AcquireOptions): Promise<Hold | null> {
    return traced('acquire', this.name, () => tried(this.#made, options, this.#hold))
  }

  /**
   * Inspects the lock: its holder and its queue, or `null` if the lock is free. Changes nothing. Rejects with `UnavailableError`,
   * `DeniedError`, `KeyConflictError` or `ClosedError`.
   *
   * @example
   * ```js
   * const lock = new Client('memory://example').lock('orders:42')
   * console.log(await lock.inspect())   // null
   * const hold = await lock.acquire()
   * const { owner, fields, remainingMs } = await lock.inspect()
   * console.log(owner === hold.owner, fields.pid === process.pid, remainingMs <= 10_000)   // true true true
   * ```
   */
  async inspect(): Promise<LockInfo | null> {
    return resultOf<LockInfo | null>(await outcome(this.#made().core.inspect()))
  }

  /**
   * Ends the hold of the lock, whatever process has it: for an operator, when a holder hangs and still renews. Resolves with what was ended, or
   * with `null` if there was nothing to end. With `owner` only the hold with this owner value is ended. A value that no locktender wrote is
   * ended only if it is given so: otherwise it is a `KeyConflictError`.
   *
   * **The holder continues until it notices**: its next renewal is refused, at most a third of its ttl later, and its hold is then lost.
   * Until then two programs may work at the same time. Only a resource that compares fences is safe from that.
   *
   * Rejects with `UnavailableError` (the hold may have ended nevertheless), `DeniedError`, `KeyConflictError` or `ClosedError`.
   *
   * @example
   * ```js
   * const lock = new Client('memory://example').lock('orders:42')
   * const hold = await lock.acquire()
   * const ended = await lock.forceRelease({ owner: hold.owner })   // say whose hold it was, and ask, before this
   * console.log(ended.owner === hold.owner, await lock.inspect())   // true null
   * ```
   */
  async forceRelease(options?: { owner?: string | undefined }): Promise<LockInfo | null> {
    const { owner }: { owner?: string } = checked('forceRelease', options)
    return resultOf<LockInfo | null>(await outcome(this.#made().core.forceRelease(owner)))
  }

  /** @deprecated It is on the result of `acquire()`. */
  release(): never {
    throw misplaced(this.name, 'release')
  }

  /** @deprecated It is on the result of `acquire()`. */
  extend(): never {
    throw misplaced(this.name, 'extend')
  }
}

answerWords(Lock.prototype, ['locked', 'unlock'])

/** The error of a method that only a hold has. @internal */
export function misplaced(name: string, method: string): NotHeldError {
  const message = `lock ${JSON.stringify(name)} only describes a lock and holds none: ${method}() is a method of what acquire() returned`
  return new NotHeldError('NOT_HELD', message, name)
}
