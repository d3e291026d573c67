import { inspect, type InspectOptions } from 'node:util'

import type * as native from '../native/index.js'
import { errorOf, LockLostError, valueOf } from './errors.js'
import { time } from './options.js'
import { outcome, queue, resultOf, watch, type Granted } from './queue.js'
import { traced } from './tracing.js'

/** What a release found. */
export interface Release {
  /** `released`: it was ours. `expired`: nobody has it. `taken`: somebody else has it, or had it in between. */
  readonly outcome: 'released' | 'expired' | 'taken'
  /** With `taken`: the owner value of who has it; `null` if that hold has ended since. */
  readonly rival: string | null
  /**
   * With `taken`: the fence of the latest hold that came between, if the servers show it. It is about the microsecond in which it
   * was issued, so it also says since when.
   */
  readonly rivalFence: number | null
  /** How long after the end of validity the release was sent, by this machine's clock. */
  readonly overrunMs: number
}

// A hold that is garbage is no longer renewed.
const forgotten = new FinalizationRegistry<number>((hold) => {
  queue.abandon(hold)
})

// Who keeps only the signal still works under the lock, which is then no garbage.
const holds = new WeakMap<AbortSignal, Held>()

// A hold whose end somebody waits for is no garbage.
const awaited = new Set<Held>()

/**
 * A lock that is ours until it is released, handed over or lost.
 *
 * It is renewed in the background, on a thread of its own: a blocked event loop doesn't let it expire. It keeps no process
 * alive. A `Held` that is garbage-collected without release, its `signal` too, is no longer renewed, and expires with a
 * `warning` event.
 */
export class Held implements AsyncDisposable {
  // The client is only kept alive: without it nobody would hear its events, nor give its locks back at exit.
  readonly #made: { readonly hold: number; readonly client: object }
  #owner: string | undefined
  #loss: AbortController | undefined
  #lost: Promise<LockLostError | null> | undefined

  /** The lock's name. */
  readonly name: string
  /** The fencing token, larger than that of every earlier hold of this name: a number that a resource compares. */
  readonly fence: number

  /** @internal */
  constructor(name: string, client: object, granted: Granted) {
    this.name = name
    this.fence = granted.fence
    this.#made = { hold: granted.hold, client }
    forgotten.register(this, granted.hold)
  }

  get #hold(): number {
    return this.#made.hold
  }

  /** The value on the servers: unique to this acquisition, readable in redis-cli. */
  get owner(): string {
    return (this.#owner ??= queue.owner(this.#hold))
  }

  /** Its data, for logs. */
  toJSON(): { name: string; owner: string; fence: number } {
    return { name: this.name, owner: this.owner, fence: this.fence }
  }

  /** @internal */
  [inspect.custom](_depth: number, options: InspectOptions): string {
    return `Held ${inspect({ ...this.toJSON(), remainingMs: this.remainingMs() }, options)}`
  }

  /** How long the lock is surely held if nothing renews it; 0 if it is not held. No I/O. */
  remainingMs(): number {
    return queue.remainingMs(this.#hold)
  }

  /** Whether the lock is held now. No I/O; never true later than the servers' expiry, also when the event loop was blocked. */
  isValid(): boolean {
    return queue.isValid(this.#hold)
  }

  /** Throws `LockLostError` or `NotHeldError` unless the lock is held now. No I/O. */
  check(): void {
    const failure = queue.checkHold(this.#hold)
    if (failure) throw errorOf(failure)
  }

  /**
   * Aborted when the lock is lost, with the `LockLostError` as its reason. A release doesn't abort it. Looking at it is
   * enough: also work that never lets the event loop run finds it aborted after a loss. Waiting for it keeps no process alive:
   * one in which nothing else is to be done ends, and gives the lock back. `lost` does.
   */
  get signal(): AbortSignal {
    this.#loss ??= this.#watched()
    if (!this.#loss.signal.aborted && !this.isValid()) this.#lookForLoss(this.#loss)
    return this.#loss.signal
  }

  /**
   * Resolves to the `LockLostError` when the lock is lost, or to `null` once it was released or handed over. Never rejects. From
   * the first look at it until then it keeps the process alive, as any call under way does, and the lock renewed.
   */
  get lost(): Promise<LockLostError | null> {
    return (this.#lost ??= this.#end())
  }

  async #end(): Promise<LockLostError | null> {
    awaited.add(this)
    const failure = resultOf<native.Failure | null>(await outcome(queue.awaitEnd(this.#hold)))
    awaited.delete(this)
    return failure ? (errorOf(failure) as LockLostError) : null
  }

  #lookForLoss(loss: AbortController): void {
    const failure = queue.checkHold(this.#hold)
    if (failure?.code === 'LOCK_LOST') loss.abort(errorOf(failure))
  }

  #watched(): AbortController {
    const loss = new AbortController()
    holds.set(loss.signal, this)
    // Weak, or what waits for the loss of a forgotten hold would keep it from being forgotten.
    const told = new WeakRef(loss)
    watch(this.#hold, (error) => {
      if (error) told.deref()?.abort(error)
    })
    return loss
  }

  /**
   * Makes at least `ttlMs` remain, without a value the lock's own ttl. An extension never shortens.
   *
   * Rejects with `LockLostError`, `NotHeldError`, or `UnavailableError` if no majority answered for `unavailableAfterMs`.
   */
  extend(ttlMs?: number): Promise<void> {
    return traced('extend', this.name, async () => {
      const ttl = time('ttlMs', ttlMs)
      resultOf(await outcome(queue.extend(this.#hold, ttl)))
    })
  }

  /** Makes what `remainingMs()` says now and `ms` more remain. Rejects as `extend` does. */
  extendBy(ms: number): Promise<void> {
    return traced('extend', this.name, async () => {
      const more = time('ms', ms ?? null)
      resultOf(await outcome(queue.extendBy(this.#hold, more as number)))
    })
  }

  /**
   * Gives the lock back, and tells what was found.
   *
   * Rejects with `UnavailableError` if the outcome is still unknown after `unavailableAfterMs`: the release goes on in the
   * background, and may be called again to learn the outcome; with `NotHeldError` if it was released or handed over before.
   */
  release(): Promise<Release> {
    return traced('release', this.name, async () => resultOf(await outcome(queue.release(this.#hold))))
  }

  /**
   * Ends this handle without releasing, and gives a single-use string for `client.adopt` in another process. Until then, at
   * most for what remains of the ttl, the lock stays taken.
   */
  handOver(): string {
    return valueOf(queue.handOver(this.#hold))
  }

  /**
   * Gives the lock back unless that was done. Never rejects: a loss shows in `signal` and as an event, with a `warning` if the work
   * never looked.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    const disposed = traced('release', this.name, async () => {
      resultOf(await outcome(queue.dispose(this.#hold)))
    })
    await disposed.catch(() => undefined)
  }

  /** Whether the loss itself ended a body: by the reason of `signal`, or by an `AbortError` of that cause. @internal */
  cancelled(error: unknown): boolean {
    const signal = this.#loss?.signal
    if (!signal?.aborted) return false
    return error === signal.reason || (error instanceof Error && error.name === 'AbortError' && error.cause === signal.reason)
  }

  /** Ends a body: rejects with `LockLostError` if the lock was lost meanwhile. @internal */
  leave(): Promise<void> {
    return traced('release', this.name, async () => {
      resultOf(await outcome(queue.leave(this.#hold)))
    })
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
