import type * as native from '../native/index.js'
import { time } from './checks.js'
import { valueOf } from './errors.js'
import { outcome, queue, resultOf } from './queue.js'

/**
 * A manual clock for every lock in this process: one test has it, and moves time forward for `memory://` and scripted servers.
 *
 * Time also passes by itself, and is never moved back. One test has the clock at a time: making a second one before the first is
 * closed throws `InvalidArgumentError`.
 *
 * @example
 * ```js
 * const clock = new Clock()
 * const hold = await new Client('memory://example').lock('report').acquire()
 * await clock.advance(3_600_000)   // the ttl is 10 s: the hold is renewed for an hour
 * console.log(hold.isValid())   // true
 * clock.close()
 * ```
 */
export class Clock implements Disposable {
  readonly #native: native.Clock

  constructor() {
    this.#native = valueOf(queue.clock())
  }

  /**
   * Moves the clock forward by `ms` milliseconds, up to 366 days. Everything that is due until then has happened when it resolves,
   * each at its time: renewals, retries, the end of waits and of holds, late answers of scripted servers. What your own code does
   * about it, it does in its own time.
   *
   * Rejects with `InvalidArgumentError` while a lock is held or waited for on a real server, which has a clock of its own.
   */
  async advance(ms: number): Promise<void> {
    resultOf(await outcome(this.#native.advance(time('ms', ms ?? null) as number)))
  }

  /** Releases the clock: another test may take it. Time continues from where it is. */
  close(): void {
    this.#native.close()
  }

  /**
   * Releases the clock.
   *
   * @example
   * ```js
   * using clock = new Clock()   // released at the end of this block
   * await clock.advance(10_000)
   * ```
   */
  [Symbol.dispose](): void {
    this.close()
  }
}
