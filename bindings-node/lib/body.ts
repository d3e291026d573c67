import { InvalidArgumentError, LockLostError } from './errors.js'
import type { Hold } from './hold.js'
import type { Holding } from './holding.js'
import type { MultiHold } from './multi.js'
import type { AcquireOptions, LockOptions, MultiLockOptions, ReadLockOptions, SemaphoreOptions } from './options.js'

/** Options of `withLock`: those of the lock, and a signal that ends the wait for it. */
export type WithLockOptions = LockOptions & AcquireOptions

/** Options of `withReadLock`: those of the read lock, and a signal that ends the wait for it. */
export type WithReadLockOptions = ReadLockOptions & AcquireOptions

/** Options of `withSemaphore`: those of the semaphore, and a signal that ends the wait for a permit. */
export type WithSemaphoreOptions = SemaphoreOptions & AcquireOptions

/** Options of `withMultiLock`: those of the locks, and a signal that ends the wait for them. */
export type WithMultiLockOptions = MultiLockOptions & AcquireOptions

/** The callback: it runs while the lock is held. */
export type LockCallback<T> = (held: Hold) => T | PromiseLike<T>

/** The callback of `withMultiLock`: it runs while all locks are held. */
export type MultiLockCallback<T> = (held: MultiHold) => T | PromiseLike<T>

/** Options of `adopt`. */
export type AdoptOptions = WithLockOptions & {
  /**
   * Whether to acquire the lock like any other if the hold that was handed over has ended. Default false: then it is `LOCK_LOST`.
   */
  orAcquire?: boolean
}

/** The outcome of `tryWithLock`; if the callback didn't run there is no `result`. */
export type TryOutcome<T> = { readonly ran: true; readonly result: T } | { readonly ran: false; readonly result?: undefined }

/** Runs `body` with `held`, and releases the lock on every way out. @internal */
export async function during<T, H extends Holding>(held: H, body: (held: H) => T | PromiseLike<T>): Promise<T> {
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
  try {
    await held.leave()
  } catch (lockError) {
    if (lockError instanceof LockLostError) lockError.result = value
    throw lockError
  }
  return value
}

/** An error of the body is always thrown; the lock's error is attached to it. */
function attach(error: unknown, lockError: unknown): void {
  if (typeof error === 'object' && error !== null && Object.isExtensible(error)) {
    Object.defineProperty(error, 'lockError', { value: lockError, configurable: true, writable: true })
  }
}

/** The order of the arguments, for each kind of lock. */
const order = {
  lock: 'withLock(name, { ttlMs: 10_000 }, body)',
  semaphore: 'withSemaphore(name, { permits: 5 }, body)',
  readLock: 'withReadLock(name, { ttlMs: 10_000 }, body)',
  multiLock: 'withMultiLock(names, { ttlMs: 10_000 }, body)',
}

/** Distinguishes `(options, body)` and `(body)`. @internal */
export function bodyOf<Body extends Function, Options extends WithLockOptions>(
  options: Options | Body | undefined,
  body: Body | undefined,
  maker: keyof typeof order,
): [Options | undefined, Body] {
  if (typeof options === 'function' && body !== undefined) {
    throw InvalidArgumentError.of('options', body, `stand before the body: ${order[maker]}`)
  }
  const [own, run] = typeof options === 'function' ? [undefined, options] : [options, body]
  if (typeof run !== 'function') throw InvalidArgumentError.of('body', run, 'must be a function, the last argument')
  if (own !== undefined && (typeof own !== 'object' || own === null)) {
    throw InvalidArgumentError.of('options', own, `must be an object between the name and the body: ${order[maker]}`)
  }
  return [own, run]
}
