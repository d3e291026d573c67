import { inspect, type InspectOptions } from 'node:util'

import type * as native from '../native/index.js'
import { addon } from './addon.js'
import { errorOf, LockLostError } from './errors.js'
import { extendOptions, type ExtendOptions } from './options.js'
import { outcome, queue, resultOf, watch } from './queue.js'
import { traced } from './tracing.js'
import { answerWords } from './words.js'

/** The result of a release. */
export interface Release {
  /**
   * `released`: the lock was held until now. `expired`: the lock is free, no server could be asked until its ttl was over, or one of its
   * keys holds what no lock writes there. `taken`: another client has it, or had it in between.
   */
  readonly outcome: 'released' | 'expired' | 'taken'
  /** With `taken`: the owner value of the next holder, which has it now or had it in between; `null` if that is unknown. */
  readonly nextOwner: string | null
  /**
   * With `taken`: the fence of that hold, if the servers show it. It is about the microsecond in which it was
   * issued, so it also shows when that hold began.
   */
  readonly nextFence: number | null
  /** The time from the end of validity to the release, by this machine's clock; 0 if the release came first. */
  readonly overrunMs: number
  /** With `released`: the time for which the lock stays taken, because of its `minHoldMs`; otherwise 0. */
  readonly keptMs: number
}

/** The grip on a hold in the core. It is garbage together with its handle. */
class Grip {
  /** The number of the hold, 0 after its release. It outlives the grip. */
  readonly on = { hold: 0 }
  // The client is only kept alive: without it, its events would get lost, and its locks would not be released at exit.
  client: object | undefined
}

// A hold that is garbage is no longer renewed.
const forgotten = new FinalizationRegistry<{ hold: number }>(({ hold }) => {
  if (hold !== 0) queue.abandon(hold)
})

// A grip serves one hold after the other. V8 needs a full garbage collection to free what a registration costs.
const unused: Grip[] = []
const MOST_UNUSED = 1_000

function gripOn(hold: number, client: object): Grip {
  let grip = unused.pop()
  if (!grip) {
    grip = new Grip()
    forgotten.register(grip, grip.on)
  }
  grip.on.hold = hold
  grip.client = client
  return grip
}

function loosen(grip: Grip): void {
  grip.on.hold = 0
  grip.client = undefined
  if (unused.length < MOST_UNUSED) unused.push(grip)
}

// A program that keeps only the signal still works under the lock. So the hold is then no garbage.
const holds = new WeakMap<AbortSignal, Holding>()

// A hold is no garbage while a caller waits for its end.
const awaited = new Set<Holding>()

/** What the hold of one lock and that of several have in common. */
export abstract class Holding implements AsyncDisposable {
  // None after a release: then nothing of the hold is left in the core.
  #grip: Grip | undefined
  #owner: string | undefined
  #loss: AbortController | undefined
  #lost: Promise<LockLostError | null> | undefined
  // What errors and traces call it: the lock's name, or all names.
  readonly #label: string

  /** @internal */
  constructor(label: string, client: object, hold: number) {
    this.#label = label
    this.#grip = gripOn(hold, client)
  }

  /** The number of the hold, for a call that needs the lock. @internal */
  get held(): number {
    return this.#kept.on.hold
  }

  /** The client. @internal */
  get client(): object {
    return this.#kept.client as object
  }

  get #kept(): Grip {
    if (!this.#grip) throw errorOf(addon.released(this.#label))
    return this.#grip
  }

  /** The result of the call that ends the hold. The core frees the hold, unless a later call may have something to report. */
  async #endedBy<T>(start: (hold: number) => number): Promise<T> {
    const settled = await outcome(start(this.held))
    const owner = this.#grip && queue.free(this.#grip.on.hold)
    if (this.#grip && owner) {
      this.#owner = owner
      loosen(this.#grip)
      this.#grip = undefined
    }
    return resultOf<T>(settled)
  }

  /**
   * The owner value: the value on the servers begins with it. Unique to this acquisition, readable in redis-cli.
   *
   * @example
   * ```js
   * const hold = await new Client('memory://example', { app: 'billing' }).lock('nightly').acquire()
   * console.log(hold.owner.startsWith('app=billing host='))   // true
   * ```
   */
  get owner(): string {
    return (this.#owner ??= queue.owner(this.held))
  }

  /** The hold's data, for logs. @internal */
  abstract toJSON(): object

  /** @internal */
  [inspect.custom](_depth: number, options: InspectOptions): string {
    return `${this.constructor.name} ${inspect({ ...this.toJSON(), remainingMs: this.remainingMs() }, options)}`
  }

  /**
   * The time for which the lock is certainly held without a renewal, in milliseconds; 0 if it is not held. No I/O.
   *
   * @example
   * ```js
   * const hold = await new Client('memory://example').lock('report').acquire()
   * if (hold.remainingMs() < 30_000) await hold.extend({ ttlMs: 60_000 })   // before a step that takes long
   * ```
   */
  remainingMs(): number {
    return this.#grip ? queue.remainingMs(this.#grip.on.hold) : 0
  }

  /**
   * Whether the lock is held now. No I/O. It is never true after the servers' expiry, also if the event loop was blocked.
   *
   * @example
   * ```js
   * const hold = await new Client('memory://example').lock('nightly').acquire()
   * console.log(hold.isValid())   // true
   * await hold.release()
   * console.log(hold.isValid())   // false
   * ```
   */
  isValid(): boolean {
    return this.#grip !== undefined && queue.isValid(this.#grip.on.hold)
  }

  /**
   * Throws `LockLostError` or `NotHeldError` unless the lock is held now. No I/O.
   *
   * @example
   * ```js
   * const hold = await new Client('memory://example').lock('orders:42').acquire()
   * hold.check()   // before each step that needs the lock
   * await hold.release()
   * try { hold.check() } catch (error) { console.log(error.code) }   // NOT_HELD
   * ```
   */
  check(): void {
    const failure = queue.checkHold(this.held)
    if (failure) throw errorOf(failure)
  }

  /**
   * A signal that is aborted when the lock is lost, with the `LockLostError` as its reason. A release doesn't abort it. Checking it
   * is enough: also code that never lets the event loop run finds it aborted after a loss. A wait for it keeps no process alive. A
   * process without other work ends, and releases the lock. A wait for `lost` keeps the process alive.
   *
   * @example
   * ```js
   * const hold = await new Client('memory://example').lock('orders:42').acquire()
   * hold.signal.throwIfAborted()                                        // throws the LockLostError
   * const answer = await fetch('data:,paid', { signal: hold.signal })   // ends at once if the lock is lost
   * await hold.release()
   * ```
   */
  get signal(): AbortSignal {
    this.#loss ??= this.#watched()
    if (!this.#loss.signal.aborted && !this.isValid()) this.#lookForLoss(this.#loss)
    return this.#loss.signal
  }

  /**
   * Resolves to the `LockLostError` when the lock is lost, or to `null` once it was released or handed over. Never rejects. From
   * the first read of this property until then, it keeps the process alive, as any call under way does, and the lock renewed.
   *
   * @example
   * ```js
   * const hold = await new Client('memory://example').lock('report', { maxHoldMs: 50 }).acquire()
   * const error = await hold.lost
   * console.log(error.code, error.reason)   // LOCK_LOST max_hold
   * ```
   */
  get lost(): Promise<LockLostError | null> {
    return (this.#lost ??= this.#end())
  }

  async #end(): Promise<LockLostError | null> {
    if (!this.#grip) return null
    awaited.add(this)
    const failure = resultOf<native.Failure | null>(await outcome(queue.awaitEnd(this.#grip.on.hold)))
    awaited.delete(this)
    return failure ? (errorOf(failure) as LockLostError) : null
  }

  #lookForLoss(loss: AbortController): void {
    const failure = this.#grip && queue.checkHold(this.#grip.on.hold)
    if (failure?.code === 'LOCK_LOST') loss.abort(errorOf(failure))
  }

  #watched(): AbortController {
    const loss = new AbortController()
    if (!this.#grip) return loss
    holds.set(loss.signal, this)
    // Weak: otherwise the wait for the loss of a forgotten hold would keep the hold alive.
    const told = new WeakRef(loss)
    watch(this.#grip.on.hold, (error) => {
      if (error) told.deref()?.abort(error)
    })
    return loss
  }

  /**
   * Extends the remaining time: without options to at least the lock's own ttl. An extension never shortens the remaining time, and
   * never goes beyond `maxHoldMs`.
   *
   * Rejects with `LockLostError`, `NotHeldError`, `InvalidArgumentError` for a time out of bounds, or `UnavailableError` if no
   * majority answered for `unavailableAfterMs`.
   *
   * @example
   * ```js
   * const hold = await new Client('memory://example').lock('report', { renew: false }).acquire()
   * await hold.extend({ ttlMs: 60_000 })   // before a step that takes long
   * await hold.extend({ byMs: 10_000 })
   * console.log(hold.remainingMs() > 60_000)   // true
   * ```
   */
  extend(options?: ExtendOptions): Promise<void> {
    return traced('extend', this.#label, async () => {
      const { ttlMs, byMs } = extendOptions(options)
      resultOf(await outcome(queue.extend(this.held, ttlMs, byMs)))
    })
  }

  /**
   * Releases the lock, and returns the outcome. If the lock was lost, and the program never asked whether it was still held, there is
   * an event `warning`; without a listener it is a warning of the process (`LOCKTENDER_LOST_UNNOTICED`).
   *
   * Rejects with `UnavailableError` if the outcome is still unknown after `unavailableAfterMs`. The release then continues in the
   * background. Call it again to learn the outcome. Rejects with `NotHeldError` if the lock was released or handed over before.
   *
   * @example
   * ```js
   * const hold = await new Client('memory://example').lock('orders:42').acquire()
   * const { outcome, nextOwner } = await hold.release()
   * console.log(outcome, nextOwner)   // released null
   * ```
   */
  release(): Promise<Release> {
    return traced('release', this.#label, () => this.#endedBy<Release>((hold) => queue.release(hold)))
  }

  /**
   * Releases the lock unless it was released before. Rejects with `LockLostError` if the lock was lost, unless the program knows that
   * already: from `signal`, `lost`, `isValid()`, `remainingMs()`, `check()` or `extend`. Rejects with nothing else.
   *
   * @example
   * ```js
   * await using hold = await new Client('memory://example').lock('orders:42').acquire()
   * hold.check()   // the lock is released at the end of this block
   * ```
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#endedUnlessOver((hold) => queue.dispose(hold)).catch((error: unknown) => {
      // What only the release found is nowhere else. A program that closes a client knows that its locks are released.
      const isKnown = this.#grip !== undefined && queue.holderKnows(this.#grip.on.hold)
      if (error instanceof LockLostError && error.reason !== 'closed' && !isKnown) throw error
    })
  }

  /** Whether the loss itself ended a body: by the reason of `signal`, or by an `AbortError` with that cause. @internal */
  cancelled(error: unknown): boolean {
    const signal = this.#loss?.signal
    if (!signal?.aborted) return false
    return error === signal.reason || (error instanceof Error && error.name === 'AbortError' && error.cause === signal.reason)
  }

  /** Ends an attempt of a job by the call that `start` starts. @internal */
  endBy(start: (hold: number) => number): Promise<void> {
    return traced('release', this.#label, () => this.#endedBy(start))
  }

  /** Ends a body: rejects with `LockLostError` if the lock was lost meanwhile. @internal */
  leave(): Promise<void> {
    return this.#endedUnlessOver((hold) => queue.leave(hold))
  }

  #endedUnlessOver(start: (hold: number) => number): Promise<void> {
    return traced('release', this.#label, () => (this.#grip ? this.#endedBy(start) : Promise.resolve()))
  }
}

answerWords(Holding.prototype, ['extendBy', 'reacquire', 'unlock'])
