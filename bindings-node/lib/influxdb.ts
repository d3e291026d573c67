import { addon } from './addon.js'
import { text } from './checks.js'
import { InvalidArgumentError } from './errors.js'
import { callGuest } from './guest.js'
import type { LockEvent } from './events.js'

/** Options of `Points`. */
export interface PointsOptions {
  /** Tags of every point, such as `{ app: 'billing' }`. Default none. */
  tags?: Readonly<Record<string, string>> | undefined
  /** The number of points of a batch. Default 1,000. */
  size?: number | undefined
  /** The longest time that a point waits for others, in milliseconds. Default 10 s. */
  intervalMs?: number | undefined
  /** Called with the error of a batch that could not be written. Default: such a batch is only counted in `dropped`. */
  onError?: ((error: unknown) => void) | undefined
}

/**
 * Collects events as points for InfluxDB, and all that reads its line protocol. It calls `write` with a batch of lines when `size` points
 * have come, and at the latest `intervalMs` after the first of them; never twice at the same time. While `write` works, points wait for
 * their turn. A point that comes while ten batches wait is dropped, and so is a batch that could not be written. No timer keeps the process
 * alive: `flush` before its end.
 *
 * @example
 * ```js
 * const written = []
 * const points = new Points(async (lines) => written.push(lines), { tags: { app: 'billing' } })
 * // with InfluxDB: (lines) => fetch('http://localhost:8086/write?db=locks', { method: 'POST', body: lines })
 * const client = new Client('memory://example')
 * client.on('event', points.add)
 * await client.withLock('orders:42', async () => 'paid')
 * await client.close()
 * await points.flush()
 * console.log(written[0]?.startsWith('locktender,app=billing,event=round,category=orders,kind=lock '))   // true
 * ```
 */
export class Points {
  /** The number of points that were dropped. */
  dropped = 0
  readonly #write: (lines: string) => unknown
  readonly #tags: [string, string][]
  readonly #size: number
  readonly #intervalMs: number
  readonly #onError: ((error: unknown) => void) | undefined
  #lines: string[] = []
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined

  /** Throws `InvalidArgumentError` for an option that is out of bounds or no text. */
  constructor(write: (lines: string) => unknown, { tags = {}, size = 1_000, intervalMs = 10_000, onError }: PointsOptions = {}) {
    if (typeof write !== 'function') throw InvalidArgumentError.of('write', typeof write, 'must be a function that takes the lines')
    if (!Number.isSafeInteger(size) || size < 1) throw InvalidArgumentError.of('size', size, 'must be a whole number, at least 1')
    if (!(intervalMs > 0 && intervalMs < 2 ** 31)) {
      throw InvalidArgumentError.of('intervalMs', intervalMs, 'must be a number of milliseconds, more than 0 and at most 24 days')
    }
    this.#write = write
    this.#onError = onError
    this.#tags = Object.entries(tags).map(([tag, value]) => [tag, text(tag, value)])
    this.#size = size
    this.#intervalMs = intervalMs
  }

  /** Takes an event: a listener for `event`. */
  readonly add = (event: LockEvent): void => {
    if (this.#lines.length < 10 * this.#size) this.#lines.push(addon.lineProtocol(event, this.#tags))
    else this.dropped += 1
    if (this.#lines.length >= this.#size) void this.#writeBatch()
    else this.#timer ??= setTimeout(() => void this.#writeBatch(), this.#intervalMs).unref()
  }

  /** Writes the points that have come so far. */
  async flush(): Promise<void> {
    while (this.#lines.length > 0 || this.#writing) await this.#writeBatch()
  }

  #writeBatch(): Promise<void> {
    return (this.#writing ??= this.#writeNext().finally(() => {
      this.#writing = undefined
      if (this.#lines.length >= this.#size) void this.#writeBatch()
    }))
  }

  async #writeNext(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const lines = this.#lines.splice(0, this.#size)
    if (lines.length === 0) return
    try {
      await this.#write(lines.map((line) => `${line}\n`).join(''))
    } catch (error) {
      this.dropped += lines.length
      const onError = this.#onError
      if (onError) callGuest(() => onError(error))
    }
  }
}
