import type * as native from '../native/index.js'
import { checked, text } from './checks.js'
import { ClientEmitter } from './emitter.js'
import { diagnostics } from './events.js'
import type { Grant, HoldInfo, LockInfo } from './lock.js'
import { Metrics } from './metrics.js'
import { outcome, resultOf } from './queue.js'
import type { ServerReport } from './servers.js'

/** What a client shows of its servers, of the locks there, and of itself. It changes nothing. */
export class Overview extends ClientEmitter {
  readonly #native: native.Client

  /** @internal */
  constructor(client: native.Client) {
    super()
    this.#native = client
  }

  /** @internal */
  static nativeOf(overview: Overview): native.Client {
    return overview.#native
  }

  /** The core's client, to make a lock by it. The core sends what subscribers of the channel listen to. @internal */
  static makerOf(overview: Overview): native.Client {
    if (diagnostics.hasSubscribers) overview.#native.hear()
    return overview.#native
  }

  /**
   * A report on each server: version, role, persistence, eviction, clock, rights, and warnings. A server that doesn't answer has a
   * `failure` in its report. Rejects with `ClosedError`, or with `InvalidArgumentError` if no server is named.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * for (const { failure, warnings } of await client.checkServers()) {
   *   console.log(failure ?? warnings)   // [ 'it keeps nothing on disk: a restart forgets every lock' ]
   * }
   * ```
   */
  async checkServers(): Promise<ServerReport[]> {
    return resultOf(await outcome(this.#native.checkServers()))
  }

  /**
   * Lists the locks that are held, by any client of this library, and whose names match `pattern` (default `*`), in the order of their
   * names. At most `limit` of them; default no limit.
   *
   * In the pattern `*` is any text, and `?` any one character. The servers list their keys in batches (`SCAN`), so that
   * none of them stops for a list. It still costs some time for each key of the server. A lock that is acquired or released meanwhile
   * may be in the list or not, and in a cluster also one whose slot moves meanwhile. A lock that another library holds isn't listed:
   * {@link Lock.inspect} shows it.
   *
   * Rejects with `UnavailableError`, `DeniedError` (the user needs `SCAN` and `GETRANGE`), `InvalidArgumentError` or `ClosedError`.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * const hold = await client.lock('orders:42').acquire()
   * for (const { name, owner } of await client.locks('orders:*', { limit: 100 })) {
   *   console.log(name, owner === hold.owner)   // orders:42 true
   * }
   * ```
   */
  async locks(pattern = '*', options?: { limit?: number | undefined }): Promise<LockInfo[]> {
    const most = limitOf('locks', options)
    return resultOf(await outcome(this.#native.locks(text('pattern', pattern), most)))
  }

  /**
   * Shows who has held which lock, the latest first: the holds that their holders have noted on the server. `name` chooses one lock;
   * without it the holds of all locks with this client's prefix are shown. `limit` is 100 by default.
   *
   * A hold is noted with its first renewal, and with its end if it lasted a second or had found the lock held. So shorter ones are not
   * shown. Of readers that were inside together the first one is noted, and of readers and holders of permits each that lost the lock.
   * Holders don't wait for these notes, and one may be missing. The server keeps the last 10,000 of all locks.
   *
   * Rejects with `InvalidArgumentError`, also on a quorum, which has no history; `UnavailableError`, `DeniedError` (the user needs
   * `XREVRANGE` of `{~lt}:log`), `KeyConflictError` or `ClosedError`.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * for (const { owner, fence, began, state } of await client.history('orders:42', { limit: 20 })) {
   *   console.log(owner, fence, began, state)
   * }
   * ```
   */
  async history(name?: string, options?: { limit?: number | undefined }): Promise<Grant[]> {
    const most = limitOf('history', options)
    return resultOf<Grant[]>(await outcome(this.#native.history(name === undefined ? undefined : text('name', name), most)))
  }

  /**
   * The locks that this client holds now, in the order of their names. Asks no server.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * const hold = await client.lock('orders:42').acquire()
   * console.log(client.holds().map(({ name, kind, fence }) => [name, kind, fence === hold.fence]))   // [ [ 'orders:42', 'lock', true ] ]
   * ```
   */
  holds(): HoldInfo[] {
    return this.#native.holds() as HoldInfo[]
  }

  /**
   * What this client has counted since it was made, and what it holds and waits for now. It is always counted; reading it asks no
   * server.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * await client.withLock('orders:42', async () => 'paid')
   * console.log(client.metrics().value('locktender_acquires_total', { category: 'orders', end: 'acquired' }))   // 1
   * ```
   */
  metrics(): Metrics {
    return new Metrics(this.#native.metrics())
  }
}

function limitOf(place: 'locks' | 'history', options: unknown): number | undefined {
  const { limit }: { limit?: number } = checked(place, options)
  return limit === undefined ? undefined : Math.min(limit, 0xffff_ffff)
}
