import type * as native from '../native/index.js'
import { errorOf, LockLostError, valueOf } from './errors.js'
import { time } from './options.js'
import { result, watch } from './queue.js'

/** What a release found. */
export interface Release {
  /** `released`: it was ours. `expired`: nobody has it. `taken`: `rival` has it. */
  readonly outcome: 'released' | 'expired' | 'taken'
  readonly rival: string | null
  /** How long after the end of validity the release was sent, by this machine's clock. */
  readonly overrunMs: number
}

/**
 * What the core made for a client. It keeps the client alive: without it nobody would hear the client's events, nor give its
 * locks back at exit. @internal
 */
export interface Made<T> {
  readonly native: T
  readonly client: object
}

// Who keeps only the signal still works under the lock, which is then no garbage.
const holds = new WeakMap<AbortSignal, Held>()

/**
 * A lock that is ours until it is released, handed over or lost.
 *
 * It is renewed in the background, on a thread of its own: a blocked event loop doesn't let it expire. It keeps no process
 * alive. A `Held` that is garbage-collected without release, its `signal` too, is no longer renewed, and expires with a
 * `warning` event.
 */
export class Held implements AsyncDisposable {
  readonly #made: Made<native.Held>
  #loss: AbortController | undefined

  /** The lock's name. */
  readonly name: string
  /** The value on the servers: unique to this acquisition, readable in redis-cli. */
  readonly owner: string
  /** The fencing token, larger than that of every earlier hold of this name: a number that a resource compares. */
  readonly fence: number

  /** @internal */
  constructor(made: Made<native.Held>) {
    this.#made = made
    this.name = made.native.name
    this.owner = made.native.owner
    this.fence = made.native.fence
  }

  get #native(): native.Held {
    return this.#made.native
  }

  /** How long the lock is surely held if nothing renews it; 0 if it is not held. No I/O. */
  remainingMs(): number {
    return this.#native.remainingMs()
  }

  /** Whether the lock is held now. No I/O; never true later than the servers' expiry, also when the event loop was blocked. */
  isValid(): boolean {
    return this.#native.isValid()
  }

  /** Throws `LockLostError` or `NotHeldError` unless the lock is held now. No I/O. */
  check(): void {
    const failure = this.#native.check()
    if (failure) throw errorOf(failure)
  }

  /** Aborted when the lock is lost, with the `LockLostError` as its reason. A release doesn't abort it. */
  get signal(): AbortSignal {
    return (this.#loss ??= this.#watched()).signal
  }

  #watched(): AbortController {
    const loss = new AbortController()
    holds.set(loss.signal, this)
    // Weak, or what waits for the loss of a forgotten hold would keep it from being forgotten.
    const told = new WeakRef(loss)
    watch(this.#native.watch(), (error) => {
      if (error) told.deref()?.abort(error)
    })
    return loss
  }

  /**
   * Makes at least `ttlMs` remain, without a value the lock's own ttl. An extension never shortens.
   *
   * Rejects with `LockLostError`, `NotHeldError`, or `UnavailableError` if no majority answered for `unavailableAfterMs`.
   */
  async extend(ttlMs?: number): Promise<void> {
    const ttl = time('ttlMs', ttlMs)
    return await result(() => this.#native.extend(ttl))
  }

  /** Makes what remains now and `ms` more remain. Rejects as `extend` does. */
  async extendBy(ms: number): Promise<void> {
    const more = time('ms', ms ?? null)
    return await result(() => this.#native.extendBy(more as number))
  }

  /**
   * Gives the lock back, and tells what was found.
   *
   * Rejects with `UnavailableError` if the outcome is still unknown after `unavailableAfterMs`: the release goes on in the
   * background, and may be called again to learn the outcome; with `NotHeldError` if it was released or handed over before.
   */
  async release(): Promise<Release> {
    return await result(() => this.#native.release())
  }

  /**
   * Ends this handle without releasing, and gives a single-use string for `client.adopt` in another process. Until then, at
   * most for what remains of the ttl, the lock stays taken.
   */
  handOver(): string {
    return valueOf(this.#native.handOver())
  }

  /** Gives the lock back unless that was done. Never rejects: a loss shows in `signal` and as an event. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave().catch(() => undefined)
  }

  /** Whether the loss itself ended a body: by the reason of `signal`, or by an `AbortError` of that cause. @internal */
  cancelled(error: unknown): boolean {
    const signal = this.#loss?.signal
    if (!signal?.aborted) return false
    return error === signal.reason || (error instanceof Error && error.name === 'AbortError' && error.cause === signal.reason)
  }

  /** Ends a body: rejects with `LockLostError` if the lock was lost meanwhile. @internal */
  async leave(): Promise<void> {
    return await result(() => this.#native.leave())
  }
}

/** Runs `body` with `held`, and gives the lock back on every way out. @internal */
export async function during<T>(held: Held, body: (held: Held) => T | PromiseLike<T>): Promise<T> {
  let value: T
  try {
    value = await body(held)
  } catch (error) {
    await held.leave().catch((lockError: unknown) => {
      if (held.cancelled(error)) throw lockError
      attach(error, lockError)
    })
    throw error
  }
  await held.leave().catch((lockError: unknown) => {
    if (lockError instanceof LockLostError) lockError.result = value
    throw lockError
  })
  return value
}

/** An error of the body always wins; the lock's goes with it. */
function attach(error: unknown, lockError: unknown): void {
  if (typeof error === 'object' && error !== null && Object.isExtensible(error)) {
    Object.defineProperty(error, 'lockError', { value: lockError, configurable: true, writable: true })
  }
}
