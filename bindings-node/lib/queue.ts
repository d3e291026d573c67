import * as native from '../native/index.js'
import { errorOf, type LockError } from './errors.js'
import { deliver, type LockEvent } from './events.js'

// The places of a triple that the native queue gives, by its kind.
const [RESOLVED, REJECTED, ENDED] = [0, 1, 2]

interface Settled {
  readonly failure: native.Failure | undefined
  readonly value: unknown
}

const waiting = new Map<number, (settled: Settled) => void>()
const watching = new Map<number, (loss: LockError | undefined) => void>()

// Bun and Deno load Node's addons, but have another event loop.
const hosted = process.versions['bun'] === undefined && process.versions['deno'] === undefined

/** The native queue of this environment: the main thread's, or a worker's. @internal */
export const queue = new native.CompletionQueue(drain, hosted)

// Locks that are still held are given back; a worker's environment does the same when it ends.
process.once('exit', () => {
  queue.closeClients()
})

/** Takes out all that has come together since JavaScript was woken. */
function drain(): void {
  const items = queue.drain()
  for (let at = 0; at < items.length; at += 3) {
    const [kind, number, value] = items.slice(at, at + 3) as [number, number, unknown]
    if (kind === RESOLVED) settle(number, { failure: undefined, value })
    else if (kind === REJECTED) settle(number, { failure: value as native.Failure, value: undefined })
    else if (kind === ENDED) ended(number, value as native.Failure | null)
    else deliver(number, value as LockEvent)
  }
}

function settle(number: number, settled: Settled): void {
  const resolve = waiting.get(number)
  waiting.delete(number)
  resolve?.(settled)
}

function ended(number: number, loss: native.Failure | null): void {
  const told = watching.get(number)
  watching.delete(number)
  told?.(loss ? errorOf(loss) : undefined)
}

/** Calls `told` once the hold that is watched under `number` has ended. @internal */
export function watch(number: number, told: (loss: LockError | undefined) => void): void {
  watching.set(number, told)
}

/** Waits for the result of the call that `start` sends off; aborting `signal` ends it. @internal */
export async function result<T>(start: () => number, signal?: AbortSignal): Promise<T> {
  if (signal?.aborted) throw signal.reason
  const { failure, value } = await (signal ? abortable(start(), signal) : plain(start()))
  // Made here, so that the stack shows who waited for it.
  if (failure) throw errorOf(failure)
  return value as T
}

function plain(number: number): Promise<Settled> {
  return new Promise((resolve) => waiting.set(number, resolve))
}

function abortable(number: number, signal: AbortSignal): Promise<Settled> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      waiting.delete(number)
      queue.cancel(number)
      // The reason passes through as itself, whatever it is.
      reject(signal.reason as Error)
    }
    onAbort(signal, abort)
    waiting.set(number, (settled) => {
      offAbort(signal, abort)
      resolve(settled)
    })
  })
}

// One listener for each signal, however many calls it ends: Node warns of a leak where there are more than ten.
const aborts = new Map<AbortSignal, Set<() => void>>()

function onAbort(signal: AbortSignal, abort: () => void): void {
  const together = aborts.get(signal)
  if (together) {
    together.add(abort)
    return
  }
  aborts.set(signal, new Set([abort]))
  signal.addEventListener('abort', abortAll)
}

function offAbort(signal: AbortSignal, abort: () => void): void {
  const together = aborts.get(signal)
  together?.delete(abort)
  if (together?.size === 0) forget(signal)
}

function abortAll(this: AbortSignal): void {
  const together = aborts.get(this)
  forget(this)
  together?.forEach((abort) => {
    abort()
  })
}

function forget(signal: AbortSignal): void {
  aborts.delete(signal)
  signal.removeEventListener('abort', abortAll)
}
