import type * as native from '../native/index.js'
import { addon } from './addon.js'
import { callGuest } from './guest.js'
import type { LockOptions } from './options.js'

const warned = new Set<string>()
let outermost: Function | undefined

/** Runs `call` for `entry`, a function that only calls others of this package: the place to warn of is where `entry` was called. @internal */
export function onBehalfOf<T>(entry: Function, call: () => T): T {
  const before = outermost
  outermost ??= entry
  try {
    return call()
  } finally {
    outermost = before
  }
}

/**
 * Warns of options that are allowed and probably a mistake, once for each place in the program: by an event of the client, and by a
 * warning of the process that names the place. `entry` is the function that the application called. What `isRefused` needs no warning. @internal
 */
export function suspect(
  client: native.Client | undefined,
  name: string | null,
  { ttlMs }: LockOptions,
  entry: Function,
  isRefused?: () => boolean,
): void {
  const texts = [ttlMs === undefined ? null : addon.suspiciousTtl(ttlMs), name?.includes('${') ? ofTemplate(name) : null]
  for (const text of texts) if (text !== null && !isRefused?.()) warn(client, name, text, outermost ?? entry)
}

function ofTemplate(name: string): string | null {
  const field = /\$\{[^{}]+\}/.exec(name)
  return field && `name: ${JSON.stringify(name)} has ${field[0]} in it as it stands: was a template literal meant, in backticks?`
}

function warn(client: native.Client | undefined, name: string | null, text: string, entry: Function): void {
  const place = placeOf(entry)
  const once = place || text
  if (warned.has(once)) return
  warned.add(once)
  client?.warn(name, text)
  const warning = { type: 'LocktenderWarning', code: 'LOCKTENDER_SUSPICIOUS', detail: place, ctor: entry }
  callGuest(() => process.emitWarning(text, warning))
}

/** The line of a stack that called `entry`; empty if stacks are switched off. */
function placeOf(entry: Function): string {
  const here: { stack?: unknown } = {}
  Error.captureStackTrace(here, entry)
  return typeof here.stack === 'string' ? (here.stack.split('\n')[1] ?? '') : ''
}
