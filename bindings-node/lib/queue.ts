import { isMainThread } from 'node:worker_threads'

import { Kind, type Failure, type Recorded, type Release } from '../native/index.js'
import { onAbort } from './aborts.js'
import { addon } from './addon.js'
import { keepCause } from './causes.js'
import { credentialsOf } from './credentials.js'
import { errorOf, type LockError } from './errors.js'
import { deliver, emitterOf, followers, type LockEvent } from './events.js'
import { atExit } from './exits.js'

// An item of the native queue is three numbers: kind, number and value. Other results come next to them.
const NUMBERS = 3
const AT_ONCE = 256

/** A hold, by the number of the call that got it. @internal */
export interface Granted {
  readonly hold: number
  readonly fence: number
}

/** A failure on its way to the function that waits. The error is made there, so that its stack shows that function. */
class Refused {
  constructor(readonly failure: Failure) {}
}

const waiting = new Map<number, (outcome: unknown) => void>()
const watching = new Map<number, (loss: LockError | undefined) => void>()

// Bun and Deno load Node's addons, but have another event loop.
const hosted = process.versions['bun'] === undefined && process.versions['deno'] === undefined

const numbers = new Float64Array(1 + AT_ONCE * NUMBERS)

/** The native queue of this environment: the main thread's, or a worker's. @internal */
export const queue = new addon.CompletionQueue(drain, hosted)

// Locks that are still held are released; a worker's environment does the same when it ends. A crash may be the work's: so its attempts
// have failed, also those in workers, which a crash of the main thread ends.
atExit((crash) => {
  queue.closeClients(crash, isMainThread)
})

/** Takes all results that have arrived since JavaScript was called. */
function drain(): void {
  let count = AT_ONCE
  while (count === AT_ONCE) {
    const rich = queue.drain(numbers)
    count = numbers[0] as number
    let next = 0
    const told: (() => void)[] = []
    for (let item = 0, at = 1; item < count; item += 1, at += NUMBERS) {
      const kind = numbers[at] as number
      const number = numbers[at + 1] as number
      const value = kind < Kind.Resolved ? numbers[at + 2] : rich?.[next++]
      if (kind < Kind.Ended) settle(number, outcomeOf(kind, number, value))
      else if (kind === Kind.Ended) told.push(() => ended(number, value as Failure | null))
      else if (kind === Kind.Asked) {
        const question = numbers[at + 2] as number
        told.push(() => void answer(number, question, value as string))
      }
      else if (kind === Kind.Followed) told.push(() => followers.forEach((follower) => follower.record(value as Recorded)))
      else {
        const isSelfWait = numbers[at + 2] === 1
        told.push(() => deliver(number, value as LockEvent, isSelfWait))
      }
    }
    // Listeners are called last. One that aborts a call would leave a lock behind that this call was granted in the same turn.
    for (const tell of told) tell()
  }
}

/** Answers a question for the credentials of client `number`. */
async function answer(number: number, question: number, server: string): Promise<void> {
  try {
    const { user, password, expiresInMs } = await credentialsOf(emitterOf(number), server)
    const refusal = queue.giveCredentials(question, user, password, expiresInMs)
    if (refusal) throw errorOf(refusal)
  } catch (error) {
    keepCause(question, error)
    queue.failCredentials(question, said(error))
  }
}

/** What a function of the program threw, in words, whatever it is. */
function said(error: unknown): string {
  try {
    return String(error).toWellFormed()
  } catch {
    return typeof error
  }
}

function outcomeOf(kind: number, number: number, value: unknown): unknown {
  switch (kind) {
    case Kind.Done:
      return undefined
    case Kind.Held:
      return { hold: number, fence: value as number } satisfies Granted
    case Kind.Released:
      return { outcome: 'released', nextOwner: null, nextFence: null, overrunMs: value as number, keptMs: 0 } satisfies Release
    case Kind.Rejected:
      return new Refused(value as Failure)
    default:
      return value
  }
}

function settle(number: number, outcome: unknown): void {
  const resolve = waiting.get(number)
  waiting.delete(number)
  resolve?.(outcome)
}

function ended(number: number, loss: Failure | null): void {
  const told = watching.get(number)
  watching.delete(number)
  told?.(loss ? errorOf(loss) : undefined)
}

/** Calls `told` once the hold has ended. @internal */
export function watch(hold: number, told: (loss: LockError | undefined) => void): void {
  watching.set(hold, told)
  queue.watch(hold)
}

/** The outcome of the call with this number: `resultOf` makes a result or an error of it. @internal */
export function outcome(number: number): Promise<unknown> {
  return new Promise((resolve) => waiting.set(number, resolve))
}

/** The outcome of the call that `start` starts; aborting `signal` ends it. @internal */
export function outcomeUnless(signal: AbortSignal | undefined, start: () => number): Promise<unknown> {
  if (signal?.aborted) throw signal.reason
  return signal ? abortable(start, signal) : outcome(start())
}

/** The result of a call. Throws the call's error: to be called by the function that waited for the outcome. @internal */
export function resultOf<T>(outcome: unknown): T {
  if (outcome instanceof Refused) throw errorOf(outcome.failure)
  return outcome as T
}

/** The signal may be the application's own, so nothing is sent before it has a listener. */
function abortable(start: () => number, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let number: number | undefined
    let aborted = false
    const listening = onAbort(signal, (reason) => {
      aborted = true
      if (number !== undefined) {
        waiting.delete(number)
        queue.cancel(number)
      }
      // It is passed on unchanged, whatever it is.
      reject(reason as Error)
    })
    // Some signals notify while a listener is being added.
    if (aborted) return
    number = start()
    waiting.set(number, (outcome) => {
      resolve(outcome)
      listening.end()
    })
  })
}
