import { LockLostError, valueOf } from './errors.js'
import { Holding } from './holding.js'
import { outcome, queue, resultOf, type Granted } from './queue.js'
import { traced } from './tracing.js'

/**
 * A hold: one acquisition of a lock, until it is released, handed over or lost.
 *
 * It is renewed in the background, on a separate thread: a blocked event loop doesn't let it expire. It keeps no process alive. If
 * a `Hold` and its `signal` are garbage-collected without a release, the hold is no longer renewed. It expires with a `warning`
 * event.
 *
 * @example
 * ```js
 * const hold = await new Client('memory://example').lock('orders:42').acquire()
 * try {
 *   const row = { total: 7, fence: hold.fence }   // the database refuses a row with a smaller fence
 * } finally {
 *   await hold.release()
 * }
 * ```
 */
export class Hold extends Holding {
  /** The lock's name. */
  readonly name: string
  /** The fence, larger than that of every earlier hold of this name: a number that a resource compares, for one name only. */
  readonly fence: number

  /** @internal */
  constructor(name: string, client: object, granted: Granted) {
    super(name, client, granted.hold)
    this.name = name
    this.fence = granted.fence
  }

  /**
   * The hold's data, for logs.
   *
   * @example
   * ```js
   * const hold = await new Client('memory://example').lock('nightly').acquire()
   * const { name, fence } = JSON.parse(JSON.stringify(hold))
   * console.log(name, fence === hold.fence)   // nightly true
   * ```
   */
  toJSON(): { name: string; owner: string; fence: number } {
    return { name: this.name, owner: this.owner, fence: this.fence }
  }

  /**
   * Ends this handle without a release, and returns a single-use string for `client.adopt` in another process. Until then the lock
   * stays held, for the remaining time of its ttl at most. Throws `LockLostError` or `NotHeldError`.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * const hold = await client.lock('report').acquire()
   * const ticket = hold.handOver()   // send it to another process
   * console.log(hold.isValid(), await client.lock('report').tryAcquire())   // false null
   * const theirs = await client.adopt(ticket)
   * ```
   */
  handOver(): string {
    return valueOf(queue.handOver(this.held))
  }

  /**
   * Makes a writer's hold a reader's, without a gap: resolves to a new hold of the read lock of this name, and other readers may enter.
   * This hold ends. The new one has the options of this one and a fence of its own, above this one's; what is left of
   * `minHoldMs` ends.
   *
   * There is no way back: two readers that wait to become a writer would wait for each other. Release, and acquire the lock.
   *
   * Rejects with `LockLostError`, reason `ended`, if the server doesn't have this hold any more, or if an answer was lost; with
   * `NotHeldError` after a release or a hand-over; with `InvalidArgumentError` for a hold that is no plain lock's on one server.
   * Otherwise rejects as `acquire` does.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * const writer = await client.lock('prices').acquire()   // writes, and then
   * const reader = await writer.downgrade()
   * console.log(reader.fence > writer.fence, writer.isValid())   // true false
   * const other = await client.readLock('prices').tryAcquire()
   * console.log(other.fence === reader.fence)   // true
   * ```
   */
  downgrade(): Promise<Hold> {
    return traced('acquire', this.name, async () => {
      const { client, held } = this
      return new Hold(this.name, client, resultOf<Granted>(await outcome(queue.downgrade(held))))
    })
  }

  /** Whether an error is the loss of this lock, or of a call that the loss has ended. @internal */
  isLoss(error: unknown): boolean {
    return this.cancelled(error) || (error instanceof LockLostError && error.lockName === this.name)
  }
}
