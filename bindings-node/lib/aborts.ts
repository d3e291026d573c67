import { callGuest } from './guest.js'

type Abort = (reason: unknown) => void

/** The calls that one signal ends, and its listener for all of them. */
interface Together {
  readonly aborts: Set<Abort>
  readonly listener: () => void
}

// One listener for each signal, for any number of calls: Node warns of a leak if there are more than ten listeners.
const signals = new Map<AbortSignal, Together>()

/** Calls `abort` when the signal is aborted. @internal */
export function onAbort(signal: AbortSignal, abort: Abort): { end(): void } {
  const together = signals.get(signal) ?? listen(signal)
  together.aborts.add(abort)
  if (signal.aborted) together.listener()
  return {
    end: () => {
      together.aborts.delete(abort)
      if (together.aborts.size === 0) forget(signal, together)
    },
  }
}

function listen(signal: AbortSignal): Together {
  const together: Together = { aborts: new Set(), listener: () => abortAll(signal, together) }
  signal.addEventListener('abort', together.listener)
  signals.set(signal, together)
  return together
}

function abortAll(signal: AbortSignal, together: Together): void {
  forget(signal, together)
  const reason = reasonOf(signal)
  const aborts = [...together.aborts]
  together.aborts.clear()
  for (const abort of aborts) abort(reason)
}

function forget(signal: AbortSignal, together: Together): void {
  if (signals.get(signal) !== together) return
  signals.delete(signal)
  callGuest(() => {
    signal.removeEventListener('abort', together.listener)
  })
}

/** The reason, or the error that the signal throws instead. */
function reasonOf(signal: AbortSignal): unknown {
  try {
    return signal.reason
  } catch (error) {
    return error
  }
}
