import type * as native from '../native/index.js'
import { addon } from './addon.js'
import { text } from './checks.js'
import type { Made } from './core.js'
import { InvalidArgumentError } from './errors.js'
import { Holding } from './holding.js'
import { acquired, misplaced, tried } from './lock.js'
import type { AcquireOptions } from './options.js'
import { queue, type Granted } from './queue.js'
import { traced } from './tracing.js'
import { answerWords } from './words.js'

/** The names of several locks, checked. @internal */
export function namesOf(names: unknown): readonly string[] {
  if (!Array.isArray(names)) throw InvalidArgumentError.of('names', names, "must be an array of names: ['a', 'b']")
  return Object.freeze(Array.from(names, (name: unknown) => text('names', name)))
}

/**
 * A hold of several locks: all of them are held until they are released, or until the first of them is lost. The others stay
 * taken then until the hold is released, but are no longer renewed: the work may still run.
 *
 * It is renewed, used and ended as a `Hold`. It can't be handed over.
 *
 * @example
 * ```js
 * const hold = await new Client('memory://example').multiLock(['account:1', 'account:2']).acquire()
 * console.log(hold.names, hold.fences.get('account:2') > 0)   // [ 'account:1', 'account:2' ] true
 * await hold.release()
 * ```
 */
export class MultiHold extends Holding {
  /** The locks' names, in the order in which they were given. */
  readonly names: readonly string[]
  /** The fence of each name, larger than that of every earlier hold of this name. */
  readonly fences: ReadonlyMap<string, number>

  /** @internal */
  constructor(names: readonly string[], client: object, granted: Granted) {
    super(names.join(', '), client, granted.hold)
    this.names = names
    const fences = queue.fences(granted.hold)
    this.fences = new Map(names.map((name, at) => [name, fences[at] as number]))
  }

  /**
   * The hold's data, for logs.
   *
   * @example
   * ```js
   * const hold = await new Client('memory://example').multiLock(['a', 'b']).acquire()
   * const { names, fences } = JSON.parse(JSON.stringify(hold))
   * console.log(names, fences.b === hold.fences.get('b'))   // [ 'a', 'b' ] true
   * ```
   */
  toJSON(): { names: readonly string[]; owner: string; fences: Record<string, number> } {
    return { names: this.names, owner: this.owner, fences: Object.fromEntries(this.fences) }
  }
}

answerWords(MultiHold.prototype, ['handOver', 'downgrade'], addon.insteadOfMemberOfSeveral)

/**
 * Several locks, as names and options, which are acquired all at once, or none of them. It does no I/O, and may be shared and used again,
 * also at the same time.
 *
 * @example
 * ```js
 * const accounts = new Client('memory://example').multiLock(['account:1', 'account:2'], { waitMs: 5_000 })
 * const hold = await accounts.acquire()
 * await hold.release()
 * ```
 */
export class MultiLock {
  readonly #made: () => Made<native.Lock>
  /** The names, without the client's prefix, in the order in which they were given. */
  readonly names: readonly string[]

  /** @internal */
  constructor(names: readonly string[], made: () => Made<native.Lock>) {
    this.names = names
    this.#made = made
  }

  readonly #hold = (client: object, granted: Granted): MultiHold => new MultiHold(this.names, client, granted)

  /**
   * Acquires all locks, and waits at most `waitMs` while any of them is busy. Aborting `signal` ends the wait, rejects with the signal's
   * reason and leaves no key. After the grant the signal has no effect.
   *
   * Rejects as `acquire` of a `Lock` does. `AcquireTimeoutError` and `KeyConflictError` name the lock that was in the way.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * await using hold = await client.multiLock(['account:1', 'account:2']).acquire()
   * console.log(await client.lock('account:2').tryAcquire())   // null
   * ```
   */
  acquire(options?: AcquireOptions): Promise<MultiHold> {
    return traced('acquire', this.names.join(', '), () => acquired(this.#made, options, this.#hold))
  }

  /**
   * Tries once to acquire all locks: `null` if any of them is busy. It ignores `waitMs`. Rejects as `acquire` does, except for a busy
   * lock.
   *
   * @example
   * ```js
   * const accounts = new Client('memory://example').multiLock(['account:1', 'account:2'])
   * const hold = await accounts.tryAcquire()
   * console.log(await accounts.tryAcquire())   // null
   * await hold?.release()
   * ```
   */
  tryAcquire(options?: AcquireOptions): Promise<MultiHold | null> {
    return traced('acquire', this.names.join(', '), () => tried(this.#made, options, this.#hold))
  }

  /** @deprecated It is on the result of `acquire()`. */
  release(): never {
    throw misplaced(this.names.join(', '), 'release')
  }

  /** @deprecated It is on the result of `acquire()`. */
  extend(): never {
    throw misplaced(this.names.join(', '), 'extend')
  }
}

answerWords(MultiLock.prototype, ['inspect', 'forceRelease', 'locked', 'unlock'], addon.insteadOfMemberOfSeveral)
