import { LockLostError } from './errors.js'
import type { Held } from './held.js'

/** Runs `body` with `held`, and releases the lock on every way out. @internal */
export async function during<T>(held: Held, body: (held: Held) => T | PromiseLike<T>): Promise<T> {
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
  await held.leave().catch((lockError: unknown) => {
    if (lockError instanceof LockLostError) lockError.result = value
    throw lockError
  })
  return value
}

/** An error of the body is always thrown; the lock's error is attached to it. */
function attach(error: unknown, lockError: unknown): void {
  if (typeof error === 'object' && error !== null && Object.isExtensible(error)) {
    Object.defineProperty(error, 'lockError', { value: lockError, configurable: true, writable: true })
  }
}
