import type * as native from '../native/index.js'
import { addon } from './addon.js'
import { checked, text } from './checks.js'
import { errorOf } from './errors.js'

/** An operation that a scripted server received. */
export interface Seen {
  /** `acquire`, `confirm`, `extend`, `heal`, `release`, `inspect`, `end`, `reset`, `status`, `greet` or `trust`. */
  readonly op: string
  /** The lock's name; `null` if the operation is about no lock. */
  readonly lockName: string | null
  /** The owner value of the caller; `null` if the operation has none. */
  readonly owner: string | null
}

/**
 * A test double: a lock server whose answers a script prescribes.
 *
 * @example
 * ```js
 * const server = new ScriptedServer('acquire: busy owner=somebody ttl=500')   // the first acquire; then it behaves
 * const lock = new Client(server).lock('orders')
 * console.log(await lock.tryAcquire(), server.unplayed)   // null 0
 * const hold = await lock.tryAcquire()
 * console.log(server.seen.map(({ op }) => op))   // [ 'acquire', 'acquire' ]
 * ```
 */
export class ScriptedServer {
  readonly #native: native.ScriptedServer

  /**
   * Throws `InvalidArgumentError` for a step that doesn't exist.
   *
   * @param script one step a line, `operation: step`, or `always operation: step`; see `play`
   * @param options the server's `name` in errors and reports, default `test`, and its `responseTimeoutMs`, default 1 s, up to 366 days
   */
  constructor(script?: string, options?: { name?: string | undefined; responseTimeoutMs?: number | undefined }) {
    const { name = 'test', responseTimeoutMs }: { name?: string; responseTimeoutMs?: number } = checked('server', options)
    this.#native = new addon.ScriptedServer(name)
    if (responseTimeoutMs !== undefined) throwing(this.#native.responseTimeout(responseTimeoutMs))
    if (script !== undefined) this.play(script)
  }

  /**
   * Adds steps to the script. The operation may be `any`. Steps: `real`, `granted [fence=N]`, `busy [owner=X ttl=MS|none]`,
   * `gone`, `conflict [type=X]`, `quarantine [ttl=MS]`, `mismatch [n=N max_ttl=MS]`, `fail KIND [applied]`,
   * `silence [applied]`; all but `silence` take `delay=MS`. See docs/testing.md. Throws `InvalidArgumentError` for any other step.
   *
   * @example
   * ```js
   * const server = new ScriptedServer()
   * const hold = await new Client(server).lock('report', { ttlMs: 600 }).acquire()
   * server.play('extend: gone')   // the first renewal, after 200 ms
   * console.log((await hold.lost).reason)   // missing
   * ```
   */
  play(script: string): this {
    throwing(this.#native.play(text('script', script)))
    return this
  }

  /** The operations that it received, in order. */
  get seen(): Seen[] {
    return this.#native.seen()
  }

  /** The number of steps that are still to be played. */
  get unplayed(): number {
    return this.#native.unplayed()
  }

  /** @internal */
  static nativeOf(server: ScriptedServer): native.ScriptedServer {
    return server.#native
  }
}

function throwing(failure: native.Failure | null | undefined): void {
  if (failure) throw errorOf(failure)
}
