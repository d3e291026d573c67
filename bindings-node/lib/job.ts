import type * as native from '../native/index.js'
import type { Made } from './core.js'
import { InvalidArgumentError, LockLostError } from './errors.js'
import { Hold } from './hold.js'
import { messageOf } from './messages.js'
import { failOptions, onlySignal, type AcquireOptions, type FailOptions } from './options.js'
import { outcome, outcomeUnless, queue, resultOf, type Granted } from './queue.js'
import { parsed, textOf } from './results.js'
import { traced } from './tracing.js'
import { answerWords } from './words.js'

/**
 * The state of a job.
 *
 * - `new`: no attempt has begun, or all were released.
 * - `running`: a worker runs it.
 * - `retrying`: an attempt failed or its worker died, and another one may begin.
 * - `done`: it is done.
 * - `dead`: the last attempt failed, or its worker died. No other one begins.
 */
export type JobState = 'new' | 'running' | 'retrying' | 'done' | 'dead'

/**
 * Why a call did not run a job's work. A job without a scheduled time has only `done`.
 *
 * - `done`: it was done before, or by another worker meanwhile.
 * - `dead`: the last attempt for this scheduled time failed, or its worker died.
 * - `running`: a worker runs it, or still the work of an earlier scheduled time.
 * - `missed`: a later scheduled time has begun. Scheduled times never run out of order; those that are missed are coalesced.
 * - `too_late`: the scheduled time is longer ago than `maxLatenessMs`.
 */
export type NotRunReason = 'done' | 'dead' | 'running' | 'missed' | 'too_late'

/** The outcome of a job. */
export interface JobOutcome {
  /** Whether this call ran the work, which is done. */
  readonly ran: boolean
  /** Why this call did not run the work; `null` if it did. */
  readonly reason: NotRunReason | null
  /**
   * What the work returned, in this call or in an earlier one, as JSON represents it; `null` if that was nothing. A text of another
   * program that isn't JSON is given as it is.
   */
  readonly result: unknown
  /** The number of attempts, of a job that is done or dead; otherwise 0. */
  readonly attempts: number
  /** The error of the last attempt, of a job that is dead. */
  readonly lastError: string | null
}

/** What is known of a job. What doesn't apply is `null`. */
export interface JobStatus {
  /** The state. */
  readonly state: JobState
  /** The number of attempts that have begun. */
  readonly attempts: number
  /** The number of attempts that may begin; `null` before the first one. */
  readonly maxAttempts: number | null
  /** The owner value of the last attempt. A person can read in it which worker that was. */
  readonly lastOwner: string | null
  /** The time since the last attempt began, by the server's clock. */
  readonly beganAgoMs: number | null
  /** The time for which the lease of a running attempt remains without a renewal; 0 if none runs. */
  readonly remainingMs: number
  /** The time after which the next attempt may begin, of a job that is `retrying`. */
  readonly retryInMs: number | null
  /** The error of the last attempt that failed. */
  readonly lastError: string | null
  /** The result of a job that is done, as in `JobOutcome`. */
  readonly result: unknown
  /** The latest scheduled time that has begun, of a job that runs once per scheduled time. */
  readonly scheduledTime: Date | null
  /** When the work was done last, by the server's clock. A job that runs once per scheduled time keeps it while later runs fail. */
  readonly lastDone: Date | null
}

/** The work of a job. What it returns is the result; what it throws is noted as the error of the attempt. */
export type JobWork = (attempt: Attempt) => unknown

/**
 * One attempt at a job: a `Hold`, with a number.
 *
 * `complete` and `fail` record how it ended. A release, and the end of an `await using` block, end it as if it had never begun:
 * it doesn't count, and another worker may begin at once, unless the lease was lost before (`expired`, `taken`).
 *
 * @example
 * ```js
 * const attempt = await new Client('memory://example').job('mail:7').begin()
 * console.log(attempt.number, attempt.maxAttempts, attempt.isLast)   // 1 3 false
 * await attempt.complete({ sent: 3, fence: attempt.fence })
 * ```
 */
export class Attempt extends Hold {
  /** The number of this attempt; the first is 1. */
  readonly number: number
  /** The number of attempts that may begin. */
  readonly maxAttempts: number
  /** Whether the job is dead if this attempt fails. */
  readonly isLast: boolean

  /** @internal */
  constructor(name: string, client: object, begun: native.BegunAttempt) {
    super(name, client, begun satisfies Granted)
    this.number = begun.number
    this.maxAttempts = begun.maxAttempts
    this.isLast = begun.isLast
  }

  /**
   * Notes that the job is done, with its result, and releases the lock. No other attempt begins. The result is any value that JSON
   * can express, with at most 64 KiB of text; `undefined` is no result.
   *
   * It also succeeds just after the lease was lost, if no other attempt has begun since. Otherwise it rejects with `LockLostError`,
   * and notes nothing. Rejects with `NotHeldError` if the attempt has ended before. Rejects with `InvalidArgumentError` for a result
   * that JSON can't express or that is too long; the attempt then continues. Rejects with `UnavailableError` if the outcome is still
   * unknown after `unavailableAfterMs`. Call it again to learn the outcome.
   *
   * @example
   * ```js
   * const job = new Client('memory://example').job('mail:7')
   * const attempt = await job.begin()
   * await attempt.complete({ sent: 3 })
   * console.log((await job.status()).result)   // { sent: 3 }
   * ```
   */
  async complete(result?: unknown): Promise<void> {
    await this.completeWith(textOf(result))
  }

  /** `complete`, with the result as JSON. @internal */
  completeWith(text: string | undefined): Promise<void> {
    return this.endBy((hold) => queue.complete(hold, text))
  }

  /**
   * Notes that this attempt failed, and releases the lock. After the job's `retryDelayMs` (or `retryInMs`) another attempt may begin.
   * If this was the last one, the job is dead. With `retry: false` it is dead in any case: for a failure that no other attempt can
   * help.
   *
   * The message of an `Error` is kept, or a text, up to its first 1,024 bytes. Rejects as `complete` does, with
   * `InvalidArgumentError` for a `retryInMs` out of bounds.
   *
   * @example
   * ```js
   * const job = new Client('memory://example').job('mail:7')
   * const attempt = await job.begin()
   * await attempt.fail(new Error('too many requests'), { retryInMs: 60_000 })
   * const { state, lastError } = await job.status()
   * console.log(state, lastError)   // retrying too many requests
   * ```
   */
  async fail(error: unknown, options?: FailOptions): Promise<void> {
    const { retryInMs, retry = true } = failOptions(options)
    await this.endBy((hold) => queue.fail(hold, messageOf(error), retry, retryInMs))
  }
}

answerWords(Attempt.prototype, ['done', 'giveBack'])

/**
 * A job, as a name and options: work that must be done once in a cluster. It does no I/O, and may be shared and used again.
 *
 * Any number of workers may ask for it, at any time. One of them runs it; the others wait as backups. If the work fails, or its
 * worker dies, the next one runs it, until it is done or its attempts are used up. The server counts the attempts, and keeps the
 * result or the last error for `retentionMs`. While an attempt runs, the lock with the job's name is held.
 *
 * The work itself runs at least once: a worker may die after its effect, and before its end is recorded. So an effect that must not come
 * twice is stored under the job's name, in the transaction that makes it. Against a worker that is late, send `fence` with each
 * write, and let the resource refuse a smaller one.
 *
 * A job needs one server: a client of several throws `InvalidArgumentError`.
 *
 * @example
 * ```js
 * const job = new Client('memory://example').job('mail:2026-11-21', { maxAttempts: 5 })
 * const first = await job.run(async () => ({ sent: 3 }))
 * console.log(first.ran, first.result)   // true { sent: 3 }
 * const { ran, reason, result } = await job.run(async () => 'not called')
 * console.log(ran, reason, result)   // false done { sent: 3 }
 * ```
 */
export class Job {
  readonly #made: () => Made<native.Job>
  /** The name, without the client's prefix. */
  readonly name: string

  /** @internal */
  constructor(name: string, made: () => Made<native.Job>) {
    this.name = name
    this.#made = made
  }

  /**
   * Begins an attempt, as soon as no other worker runs the job and its retry delay has passed. Waits for that at most `waitMs`.
   * Returns `null` if the job is done, or becomes done meanwhile, or nothing is to run for its scheduled time. Aborting `signal`
   * ends the wait, and rejects with the signal's reason. After the begin the signal has no effect. `run` does all of that around a
   * function.
   *
   * Rejects with `JobDeadError` if the job is dead; with `AcquireTimeoutError` if another worker ran it for all of `waitMs`, or the
   * next attempt may not begin yet; otherwise as the `acquire` of a lock.
   *
   * @example
   * ```js
   * const attempt = await new Client('memory://example').job('mail:7').begin({ signal: AbortSignal.timeout(5_000) })
   * try {
   *   await attempt?.complete('sent')
   * } catch (error) {
   *   await attempt.fail(error)
   * }
   * ```
   */
  async begin(options?: AcquireOptions): Promise<Attempt | null> {
    return await this.#begin(onlySignal(options, 'begin'))
  }

  /** Begins an attempt, or calls `over` with the outcome of a job whose work is not to run. */
  #begin(signal: AbortSignal | undefined, over?: (outcome: native.JobOutcome) => void): Promise<Attempt | null> {
    return traced('acquire', this.name, async () => {
      const { core, client } = this.#made()
      const begun = resultOf<native.BegunAttempt | native.JobOutcome>(await outcomeUnless(signal, () => core.begin()))
      if ('hold' in begun) return new Attempt(this.name, client, begun)
      over?.(begun)
      return null
    })
  }

  /**
   * Runs the job: begins an attempt, calls `work` with it, and records how it ended.
   *
   * - `work` returns: the job is done, and what it returned is the result. An attempt whose lease is lost while `work` runs is still
   *   done, if no other worker has begun since. Otherwise rejects with `LockLostError` (its `result` is what `work` returned).
   * - `work` throws: the attempt failed, and rejects with the same error. Another one may begin after `retryDelayMs`, by this worker
   *   or another. After the last one the job is dead. An error that is the loss of the lease itself, thrown by `attempt.check()` or as
   *   the reason of `attempt.signal`, is no failure of the work: the attempt counts as one whose lease was lost.
   * - The job was done before, or becomes done while this worker waits, or nothing is to run for its scheduled time: its outcome,
   *   with `ran` false.
   *
   * An uncaught error, an unhandled rejection or `process.exit(1)` while `work` runs, here or in a worker thread, fails the attempt.
   * `process.exit(0)` releases it: so let a handler of SIGTERM exit with 0.
   *
   * Aborting `signal` ends the wait, and rejects with the signal's reason. Give the signal to what `work` does, too: nothing else can
   * stop it. If `work` throws after the abort, the attempt is released and doesn't count, and the call rejects with the signal's
   * reason. If it returns all the same, the job is done. `attempt.signal` is aborted on loss.
   *
   * Rejects with `InvalidArgumentError` if JSON can't express what `work` returned, which fails the attempt: `NaN`, a `Map`,
   * a function, for example. Otherwise rejects as
   * `begin` does.
   *
   * @example
   * ```js
   * const job = new Client('memory://example').job('page:7')
   * const stop = new AbortController()   // stop.abort() where the process has to end
   * const { result } = await job.run(async (attempt) => {
   *   const answer = await fetch('data:,paid', { signal: AbortSignal.any([attempt.signal, stop.signal]) })
   *   return { text: await answer.text(), attempt: attempt.number }
   * }, { signal: stop.signal })
   * console.log(result)   // { text: 'paid', attempt: 1 }
   * ```
   */
  async run(work: JobWork, options?: AcquireOptions): Promise<JobOutcome> {
    if (typeof work !== 'function') throw InvalidArgumentError.of('work', work, 'must be a function')
    const signal = onlySignal(options, 'begin')
    let found: native.JobOutcome | undefined
    const attempt = await this.#begin(signal, (outcome) => (found = outcome))
    if (!attempt) return outcomeOf(found as native.JobOutcome)
    let value: unknown
    try {
      // It may have been aborted since the grant.
      if (signal?.aborted) throw signal.reason
      value = await work(attempt)
    } catch (error) {
      // Its own error, or the signal's, is what the caller has to get. The loss of the lease is no failure of the work.
      await (signal?.aborted || (!attempt.isValid() && attempt.isLoss(error)) ? attempt.leave() : attempt.fail(error)).catch(() => undefined)
      throw signal?.aborted ? signal.reason : error
    }
    return await finished(attempt, value)
  }

  /**
   * Inspects the job: its state, its attempts, the worker that runs it, the result or the last error. Changes nothing. Rejects with
   * `UnavailableError`, `DeniedError`, `KeyConflictError`, `InvalidArgumentError` or `ClosedError`.
   *
   * @example
   * ```js
   * const job = new Client('memory://example').job('mail:7')
   * console.log((await job.status()).state)   // new
   * await job.run(async (attempt) => {
   *   const { state, attempts, lastOwner } = await job.status()
   *   console.log(state, attempts, lastOwner === attempt.owner)   // running 1 true
   * })
   * console.log((await job.status()).state)   // done
   * ```
   */
  async status(): Promise<JobStatus> {
    const status = resultOf<native.JobStatus>(await outcome(this.#made().core.status()))
    return { ...status, state: status.state as JobState, result: parsed(status.result) }
  }

  /**
   * Forgets the job's attempts, its result and its errors, so that it runs again. Returns whether there was something to forget.
   *
   * For an operator, once the cause of the failures is fixed. While an attempt runs, nothing is forgotten, and the answer is `false`.
   * Rejects as `status` does.
   *
   * @example
   * ```js
   * const job = new Client('memory://example').job('mail:7')
   * await job.run(async () => 'sent')
   * console.log(await job.reset())   // true
   * const { ran } = await job.run(async () => 'sent again')
   * console.log(ran)   // true
   * ```
   */
  async reset(): Promise<boolean> {
    return resultOf<boolean>(await outcome(this.#made().core.reset()))
  }
}

/** Notes that an attempt is done. If that is refused while its lock is held, it failed. */
async function finished(attempt: Attempt, value: unknown): Promise<JobOutcome> {
  try {
    const text = textOf(value)
    await attempt.completeWith(text)
    return outcomeOf({ ran: true, reason: null, result: text ?? null, attempts: attempt.number, lastError: null })
  } catch (error) {
    if (attempt.isValid()) await attempt.fail(error).catch(() => undefined)
    if (error instanceof LockLostError) error.result = value
    throw error
  }
}

function outcomeOf({ ran, reason, result, attempts, lastError }: native.JobOutcome): JobOutcome {
  return { ran, reason: reason as NotRunReason | null, result: parsed(result), attempts, lastError }
}
