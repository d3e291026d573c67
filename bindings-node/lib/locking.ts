import type * as native from '../native/index.js'
import {
  bodyOf,
  during,
  type LockCallback,
  type MultiLockCallback,
  type TryOutcome,
  type WithLockOptions,
  type WithMultiLockOptions,
  type WithReadLockOptions,
  type WithSemaphoreOptions,
} from './body.js'
import { text } from './checks.js'
import { CoreLock, type LockMaker, type Made } from './core.js'
import { errorOf, valueOf } from './errors.js'
import type { Holding } from './holding.js'
import { Lock } from './lock.js'
import { MultiLock, namesOf } from './multi.js'
import {
  lockOptions,
  semaphoreOptions,
  signalOf,
  type AcquireOptions,
  type LockOptions,
  type MultiLockOptions,
  type ReadLockOptions,
  type SemaphoreOptions,
} from './options.js'
import { Overview } from './overview.js'
import { suspect } from './suspicions.js'

const optionsOf = { lock: lockOptions, semaphore: semaphoreOptions, readLock: lockOptions }

/** One lock, or several. */
interface Recipe<H> {
  acquire(options?: AcquireOptions): Promise<H>
  tryAcquire(options?: AcquireOptions): Promise<H | null>
}

/** The locks of a client, and the bodies that run under them. */
export class Locking extends Overview {
  /**
   * The lock `name`: 1 to 1,024 bytes of UTF-8 without NUL, with at most one `{tag}`. `safeName` makes a name of any text. No I/O.
   * Options that aren't given are the client's. Throws `InvalidArgumentError` for a bad name or option.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * const lock = client.lock('orders:42', { ttlMs: 30_000, waitMs: 5_000 })
   * const hold = await lock.acquire()
   * await hold.release()
   * ```
   */
  lock(name: string, options?: LockOptions): Lock {
    return this.#checked('lock', name, options, Locking.prototype.lock)
  }

  /**
   * The semaphore `name`: a lock that at most `permits` programs hold at once. No I/O. Other options that aren't given are the client's.
   *
   * Each hold is one permit, with a ttl of its own: a holder that dies costs its own permit for its own ttl, and no other. Its name is
   * that of a lock: while a permit is held, `lock` of the same name is held, and the holder of that lock has all permits. If programs ask
   * with different numbers, at most the largest one hold it. Permits have no numbers: to guard five different things, use five locks. The
   * fence rises with each grant, and orders nothing between those that hold it at once.
   *
   * Throws `InvalidArgumentError` for a bad name or option, and if the client has several servers.
   *
   * @example
   * ```js
   * const renders = new Client('memory://example').semaphore('renders', { permits: 2 })
   * const [one, two] = [await renders.acquire(), await renders.acquire()]
   * console.log(await renders.tryAcquire(), (await renders.inspect()).available)   // null 0
   * await one.release()
   * await two.release()
   * ```
   */
  semaphore(name: string, options: SemaphoreOptions): Lock {
    return this.#checked('semaphore', name, options, Locking.prototype.semaphore)
  }

  /**
   * The read lock `name`: any number of readers hold it at once, and no writer. **The writer is `lock`** of the same name. No I/O.
   * Options that aren't given are the client's.
   *
   * Each reader has a ttl of its own. While a writer waits as the first one, no new reader enters; those that a release lets in enter
   * together. So code that reads must not read once more inside: it would wait for the writer, which waits for it. Pass the hold down.
   *
   * Readers between two writers have the same fence, above that of the writer before and below that of the writer after. `downgrade` of a
   * writer's hold makes it a reader's.
   *
   * Throws `InvalidArgumentError` for a bad name or option, and if the client has several servers.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * const prices = client.readLock('prices')
   * const [one, two] = [await prices.acquire(), await prices.acquire()]
   * console.log(one.fence === two.fence, await client.lock('prices').tryAcquire())   // true null
   * await one.release()
   * await two.release()
   * ```
   */
  readLock(name: string, options?: ReadLockOptions): Lock {
    return this.#checked('readLock', name, options, Locking.prototype.readLock)
  }

  /**
   * The locks of these names: a caller gets all of them at once, or none. No I/O. Options that aren't given are the client's.
   *
   * They are the locks of `lock`: a holder of one of them blocks all. Callers with the same names in another order never block each other,
   * because a waiter holds none of the locks. It is in the queue of the first busy lock; where the locks
   * are always in use it may wait long.
   *
   * From 1 to 16 different names; in a cluster all of them need the same `{tag}`. Throws `InvalidArgumentError` for a bad name or option,
   * and if the client has several servers.
   *
   * @example
   * ```js
   * const accounts = new Client('memory://example').multiLock(['account:1', 'account:2'])
   * const hold = await accounts.acquire()
   * console.log([...hold.fences.keys()])   // [ 'account:1', 'account:2' ]
   * await hold.release()
   * ```
   */
  multiLock(names: readonly string[], options?: MultiLockOptions): MultiLock {
    return this.#several(names, options, Locking.prototype.multiLock)
  }

  #several(given: readonly string[], options: unknown, entry: Function, also: readonly string[] = []): MultiLock {
    const [own, names] = [lockOptions(options, also), namesOf(given)]
    const made = Locking.makeMultiLock(this, names, own)
    suspect(Overview.nativeOf(this), names.join(', '), own, entry)
    return new MultiLock(names, () => made)
  }

  /** @internal */
  static makeMultiLock(client: Locking, names: readonly string[], options: LockOptions): Made<native.Lock> {
    return { core: valueOf(Overview.makerOf(client).multiLock([...names], options)), client }
  }

  #checked(maker: LockMaker, name: string, options: unknown, entry: Function): Lock {
    const made = this.#made(maker, name, options, entry)
    const failure = made.core.refusal()
    if (failure) throw errorOf(failure)
    return new Lock(name, () => made)
  }

  /** Makes the lock for a body, whose acquire checks it. */
  #unchecked(maker: LockMaker, name: string, entry: Function): (options: unknown) => Lock {
    return (options) => {
      const made = this.#made(maker, name, options, entry, ['signal'])
      return new Lock(name, () => made)
    }
  }

  #made(maker: LockMaker, name: string, given: unknown, entry: Function, also: readonly string[] = []): Made {
    const own = optionsOf[maker](given, also)
    const made = Locking.makeLock(this, text('name', name), given === undefined ? undefined : own, maker)
    suspect(Overview.nativeOf(this), name, own, entry, () => made.core.refusal() !== null)
    return made
  }

  /** @internal */
  static makeLock(client: Locking, name: string, options: LockOptions | undefined, maker: LockMaker = 'lock'): Made {
    return { core: new CoreLock(Overview.makerOf(client), maker as native.LockMaker, name, options), client }
  }

  /**
   * Acquires the lock, runs `body` while holding it, and releases the lock on every way out.
   *
   * Resolves to the result of `body`. Rejects with the error of `body`; an error of the lock is then its `lockError`. Rejects with
   * `LockLostError` (its `result` is that of `body`) if the lock was lost meanwhile, or as `acquire` does. `hold.signal` is aborted on
   * loss. The option `signal` ends the wait for the lock; locktender ignores it after `body` has begun.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * const page = await client.withLock('orders:42', { waitMs: 5_000 }, async (hold) => {
   *   const answer = await fetch('data:,paid', { signal: hold.signal })   // ends at once if the lock is lost
   *   return await answer.text()
   * })
   * console.log(page)   // paid
   * ```
   */
  withLock<T>(name: string, body: LockCallback<T>): Promise<T>
  withLock<T>(name: string, options: WithLockOptions | undefined, body: LockCallback<T>): Promise<T>
  withLock<T>(name: string, options: WithLockOptions | LockCallback<T> | undefined, body?: LockCallback<T>): Promise<T> {
    return around('lock', this.#unchecked('lock', name, Locking.prototype.withLock), options, body)
  }

  /**
   * As `withLock`, but tries only once: `{ ran: false }` if the lock is busy. It ignores `waitMs`.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * const nightly = () => client.tryWithLock('nightly', async () => 'done')
   * console.log(await Promise.all([nightly(), nightly()]))   // [ { ran: true, result: 'done' }, { ran: false } ]
   * ```
   */
  tryWithLock<T>(name: string, body: LockCallback<T>): Promise<TryOutcome<T>>
  tryWithLock<T>(name: string, options: WithLockOptions | undefined, body: LockCallback<T>): Promise<TryOutcome<T>>
  tryWithLock<T>(name: string, options: WithLockOptions | LockCallback<T> | undefined, body?: LockCallback<T>): Promise<TryOutcome<T>> {
    return tryAround('lock', this.#unchecked('lock', name, Locking.prototype.tryWithLock), options, body)
  }

  /**
   * As `withLock`, with one permit of the `semaphore` of this name.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * const page = await client.withSemaphore('renders', { permits: 5, waitMs: 5_000 }, async (hold) => `rendered: ${hold.isValid()}`)
   * console.log(page)   // rendered: true
   * ```
   */
  withSemaphore<T>(name: string, options: WithSemaphoreOptions, body: LockCallback<T>): Promise<T> {
    return around('semaphore', this.#unchecked('semaphore', name, Locking.prototype.withSemaphore), options, body)
  }

  /**
   * As `withSemaphore`, but tries only once: `{ ran: false }` if all permits are held. It ignores `waitMs`.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * const render = () => client.tryWithSemaphore('renders', { permits: 1 }, async () => 'rendered')
   * console.log(await Promise.all([render(), render()]))   // [ { ran: true, result: 'rendered' }, { ran: false } ]
   * ```
   */
  tryWithSemaphore<T>(name: string, options: WithSemaphoreOptions, body: LockCallback<T>): Promise<TryOutcome<T>> {
    return tryAround('semaphore', this.#unchecked('semaphore', name, Locking.prototype.tryWithSemaphore), options, body)
  }

  /**
   * As `withLock`, with the `readLock` of this name.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * const read = () => client.withReadLock('prices', async (hold) => hold.fence)
   * const [one, two] = await Promise.all([read(), read()])   // they read at the same time
   * ```
   */
  withReadLock<T>(name: string, body: LockCallback<T>): Promise<T>
  withReadLock<T>(name: string, options: WithReadLockOptions | undefined, body: LockCallback<T>): Promise<T>
  withReadLock<T>(name: string, options: WithReadLockOptions | LockCallback<T> | undefined, body?: LockCallback<T>): Promise<T> {
    return around('readLock', this.#unchecked('readLock', name, Locking.prototype.withReadLock), options, body)
  }

  /**
   * As `withReadLock`, but tries only once: `{ ran: false }` if a writer holds the lock or is the first that waits. It ignores `waitMs`.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * await client.withLock('prices', async () => {
   *   console.log(await client.tryWithReadLock('prices', async () => 'read'))   // { ran: false }
   * })
   * ```
   */
  tryWithReadLock<T>(name: string, body: LockCallback<T>): Promise<TryOutcome<T>>
  tryWithReadLock<T>(name: string, options: WithReadLockOptions | undefined, body: LockCallback<T>): Promise<TryOutcome<T>>
  tryWithReadLock<T>(name: string, options: WithReadLockOptions | LockCallback<T> | undefined, body?: LockCallback<T>): Promise<TryOutcome<T>> {
    return tryAround('readLock', this.#unchecked('readLock', name, Locking.prototype.tryWithReadLock), options, body)
  }

  /**
   * As `withLock`, with all locks of these names: `multiLock`.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * const paid = await client.withMultiLock(['account:1', 'account:2'], { waitMs: 5_000 }, async (hold) => hold.fences.size)
   * console.log(paid)   // 2
   * ```
   */
  withMultiLock<T>(names: readonly string[], body: MultiLockCallback<T>): Promise<T>
  withMultiLock<T>(names: readonly string[], options: WithMultiLockOptions | undefined, body: MultiLockCallback<T>): Promise<T>
  withMultiLock<T>(names: readonly string[], options: WithMultiLockOptions | MultiLockCallback<T> | undefined, body?: MultiLockCallback<T>): Promise<T> {
    const recipe = (own: unknown): MultiLock => this.#several(names, own, Locking.prototype.withMultiLock, ['signal'])
    return around('multiLock', recipe, options, body)
  }

  /**
   * As `withMultiLock`, but tries only once: `{ ran: false }` if any of the locks is busy. It ignores `waitMs`.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * await client.withLock('account:2', async () => {
   *   console.log(await client.tryWithMultiLock(['account:1', 'account:2'], async () => 'paid'))   // { ran: false }
   * })
   * ```
   */
  tryWithMultiLock<T>(names: readonly string[], body: MultiLockCallback<T>): Promise<TryOutcome<T>>
  tryWithMultiLock<T>(names: readonly string[], options: WithMultiLockOptions | undefined, body: MultiLockCallback<T>): Promise<TryOutcome<T>>
  tryWithMultiLock<T>(
    names: readonly string[],
    options: WithMultiLockOptions | MultiLockCallback<T> | undefined,
    body?: MultiLockCallback<T>,
  ): Promise<TryOutcome<T>> {
    const recipe = (own: unknown): MultiLock => this.#several(names, own, Locking.prototype.tryWithMultiLock, ['signal'])
    return tryAround('multiLock', recipe, options, body)
  }
}

/** Runs a body under the locks that `recipe` makes of the options. */
async function around<T, H extends Holding>(
  maker: LockMaker | 'multiLock',
  recipe: (own: unknown) => Recipe<H>,
  options: WithLockOptions | ((held: H) => T | PromiseLike<T>) | undefined,
  body: ((held: H) => T | PromiseLike<T>) | undefined,
): Promise<T> {
  const [own, run] = bodyOf(options, body, maker)
  const signal = signalOf(own)
  const held = await recipe(own).acquire(signal && { signal })
  return await during(held, run)
}

/** The same, trying only once. */
async function tryAround<T, H extends Holding>(
  maker: LockMaker | 'multiLock',
  recipe: (own: unknown) => Recipe<H>,
  options: WithLockOptions | ((held: H) => T | PromiseLike<T>) | undefined,
  body: ((held: H) => T | PromiseLike<T>) | undefined,
): Promise<TryOutcome<T>> {
  const [own, run] = bodyOf(options, body, maker)
  const signal = signalOf(own)
  const held = await recipe(own).tryAcquire(signal && { signal })
  return held ? { ran: true, result: await during(held, run) } : { ran: false }
}
