import type * as native from '../native/index.js'
import { LockError } from './errors.js'
import { Held, type Made } from './held.js'
import { onlySignal, type AcquireOptions } from './options.js'
import { result } from './queue.js'

/** The fields of a locktender client's owner value. */
export interface OwnerFields {
  readonly app: string | null
  readonly host: string | null
  readonly pid: number | null
  /** When the holder asked, by its own clock (RFC 3339). */
  readonly at: string | null
  readonly id: string | null
}

/** What a lock looks like. */
export interface LockInfo {
  /** The value of the key. */
  readonly owner: string
  /** The value's fields; `null` if another library wrote it. */
  readonly fields: OwnerFields | null
  /** How long the key remains; `null` if it has no expiry. */
  readonly remainingMs: number | null
  /** The last fence issued, 0 if none is known. */
  readonly fence: number
  /** How many wait for it: in line, and counting the waiters of one process as one unless the lock is a fair one. */
  readonly waiters: number
  /** The first hundred of them, in the order of the line, each with the readable fields of its process. */
  readonly queue: readonly string[]
}

/** A name and options. Does no I/O, may be shared and used again, also at the same time. */
export class Lock {
  readonly #open: () => Made<native.Lock>
  #made: Made<native.Lock> | undefined
  readonly name: string

  /** @internal */
  constructor(name: string, open: () => Made<native.Lock>) {
    this.name = name
    this.#open = open
  }

  get #opened(): Made<native.Lock> {
    return (this.#made ??= this.#open())
  }

  /**
   * Acquires the lock, waiting for it at most `waitMs`. Aborting `signal` ends the wait, rejects with the signal's reason and
   * leaves no key; once the lock is granted the signal has no meaning any more.
   *
   * Rejects with `AcquireTimeoutError`, `UnavailableError`, `DeniedError`, `KeyConflictError` or `ClosedError`.
   */
  async acquire(options?: AcquireOptions): Promise<Held> {
    const signal = onlySignal(options)
    return this.#held(await result(() => this.#opened.native.acquire(), signal))
  }

  /** Tries once to acquire the lock: `null` if it is busy. Rejects as `acquire` does, but never for being busy. */
  async tryAcquire(options?: AcquireOptions): Promise<Held | null> {
    const signal = onlySignal(options)
    const held = await result<native.Held | undefined>(() => this.#opened.native.tryAcquire(), signal)
    return held ? this.#held(held) : null
  }

  #held(held: native.Held): Held {
    return new Held({ native: held, client: this.#opened.client })
  }

  /** Looks who holds the lock: `null` if nobody does. Changes nothing. */
  async inspect(): Promise<LockInfo | null> {
    return (await result<LockInfo | undefined>(() => this.#opened.native.inspect())) ?? null
  }

  /** @deprecated It is on what `acquire()` returned. */
  release(): never {
    throw misplaced('release')
  }

  /** @deprecated It is on what `acquire()` returned. */
  extend(): never {
    throw misplaced('extend')
  }
}

function misplaced(method: string): LockError {
  const message = `a lock has no ${method}(): it is on what acquire() returned, the held lock`
  return new LockError('NOT_HELD', message)
}
