import { isMainThread } from 'node:worker_threads'

import { messageOf } from './messages.js'

/** Ends what a copy of this package has; `crash` says what ended the environment, unless that was an orderly end. */
type End = (crash: string | undefined) => void

// All copies of the package share the listeners of their environment, also copies of other versions: this must stay as it is.
const SHARED = Symbol.for('locktender.exits')

/** Has `end` called at the exit of the process, or of a worker. @internal */
export function atExit(end: End): void {
  const shared = process as unknown as { [SHARED]?: End[] }
  ;(shared[SHARED] ??= listen()).push(end)
}

function listen(): End[] {
  const ends: End[] = []
  let uncaught: string | undefined
  // Listening to this event changes nothing for the program. A handler of its own may let the process live.
  process.on('uncaughtExceptionMonitor', (error: unknown) => {
    uncaught = messageOf(error)
    setImmediate(() => (uncaught = undefined)).unref()
  })
  process.once('exit', (code) => {
    const crash = code === 0 ? undefined : (uncaught ?? `the ${isMainThread ? 'process' : 'worker thread'} exited with code ${code}`)
    for (const end of ends) end(crash)
  })
  return ends
}
