// Checks of what a program gives, before the core sees it.

import { types } from 'node:util'

import type * as native from '../native/index.js'
import { addon } from './addon.js'
import { InvalidArgumentError } from './errors.js'

/** What a value has to be. @internal */
export type Kind = 'number' | 'count' | 'boolean' | 'string' | 'time' | 'function' | 'secret' | 'addresses'

/** The options of the calls that the core does not know. */
const simple = {
  extend: { ttlMs: 'number', byMs: 'number' },
  server: { name: 'string', responseTimeoutMs: 'number' },
  locks: { limit: 'count' },
  history: { limit: 'count' },
  forceRelease: { owner: 'string' },
  credentials: { user: 'secret', password: 'secret', expiresInMs: 'number' },
} as const

/** The call that takes the options: the answer for an unknown option depends on it. */
type Place = `${native.OptionPlace}` | keyof typeof simple

const kinds = new Map<string, Record<string, Kind>>(Object.entries(simple))

/** The options of a call, each with the kind of its value. The core lists those that it knows. @internal */
export function kindsOf(place: Place): Record<string, Kind> {
  const known = kinds.get(place) ?? (Object.fromEntries(addon.optionsOf(place as native.OptionPlace)) as Record<string, Kind>)
  kinds.set(place, known)
  return known
}

const spoken: Record<Kind, string> = {
  number: 'must be a number of milliseconds',
  count: 'must be a whole number, and not negative',
  boolean: 'must be true or false',
  string: 'must be a string',
  time: 'must be a Date, or milliseconds since 1970',
  function: 'must be a function',
  secret: 'must be a string',
  addresses: 'must be an object of addresses',
}

/**
 * The given options, read as JavaScript reads them: also from a prototype, from accessors and from an instance of a class, each of
 * them once. Refuses a name that is no such option, and a value of a wrong type. The core checks the values. @internal
 */
export function checked<Options extends object>(place: Place, options: unknown, also: readonly string[] = [], kinds = kindsOf(place)): Options {
  const given: Record<string, string | number | boolean | object> = {}
  if (options === undefined) return given as Options
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw InvalidArgumentError.of('options', options, 'must be an object')
  }
  if (isAbortSignal(options)) throw InvalidArgumentError.of('options', options, 'must be an object with the signal in it: { signal }')
  for (const key of namesOf(options)) {
    if (!Object.hasOwn(kinds, key) && !also.includes(key)) refuseUnknown(place, key, (options as Record<string, unknown>)[key])
  }
  for (const [key, kind] of Object.entries(kinds)) {
    const value = (options as Record<string, unknown>)[key]
    if (value !== undefined) given[key] = kind === 'string' ? text(key, value) : ofKind(key, kind === 'time' ? sinceEpoch(value) : value, kind)
  }
  return given as Options
}

/** An option that is `undefined` is not given, whatever its name. */
function refuseUnknown(place: Place, key: string, value: unknown): void {
  if (value === undefined) return
  const instead = place in simple
    ? `there is no option of this name; there are ${Object.keys(kindsOf(place)).join(', ')}`
    : addon.insteadOf(key, place as native.OptionPlace)
  // Of a text only its type: it may be a password, or a URL with a password. What a provider gives may be one in any form.
  const isHarmless = place !== 'credentials' && (typeof value === 'number' || typeof value === 'boolean')
  throw InvalidArgumentError.of(key, isHarmless ? value : typeof value, instead)
}

/**
 * The names that may be meant as options: enumerable ones, and the accessors that a class declares. A class's methods are no
 * options.
 */
function namesOf(options: object): Set<string> {
  const names = new Set<string>()
  for (let each: object | null = options; each !== null && !isRoot(each); each = Object.getPrototypeOf(each) as object | null) {
    // A literal, as nearly all options are, is read by a fast path.
    const literal = each === options && Object.getPrototypeOf(each) === Object.prototype
    for (const key of literal ? Object.keys(each) : accessible(each)) names.add(key)
  }
  return names
}

function accessible(object: object): string[] {
  const declared = Object.entries(Object.getOwnPropertyDescriptors(object))
  return declared.filter(([, { enumerable, get }]) => enumerable === true || get !== undefined).map(([key]) => key)
}

/** `Object.prototype`, of any realm: every object has its properties, so none of them is an option. */
function isRoot(object: object): boolean {
  return object === Object.prototype || Object.hasOwn(object, 'isPrototypeOf')
}

function ofKind(key: string, value: unknown, kind: Kind): number | boolean | object {
  if (kind === 'addresses') return addresses(key, value)
  // The core checks its bounds.
  const type = kind === 'time' ? 'number' : kind === 'secret' ? 'string' : kind
  const fits = kind === 'count' ? Number.isInteger(value) && (value as number) >= 0 : typeof value === type
  // What is given in the place of a secret, or of the function that gives it, may be one.
  if (!fits) throw InvalidArgumentError.of(key, kind === 'function' || kind === 'secret' ? typeof value : value, spoken[kind])
  return value as number | boolean | object
}

/** A copy of an object of addresses, without what an application has added to `Object.prototype`. */
function addresses(key: string, value: unknown): Record<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw InvalidArgumentError.of(key, value, spoken.addresses)
  const copy = Object.entries(value).map(([announced, reachable]) => [text(key, announced), text(key, reachable)])
  return Object.assign(Object.create(null) as Record<string, string>, Object.fromEntries(copy))
}

/** The milliseconds of a `Date`, of any realm. An invalid one stays as it is. */
function sinceEpoch(value: unknown): unknown {
  return types.isDate(value) && !Number.isNaN(value.getTime()) ? value.getTime() : value
}

/** A string that can be sent: without lone surrogates. @internal */
export function text(argument: string, value: unknown): string {
  if (typeof value !== 'string') throw InvalidArgumentError.of(argument, value, 'must be a string')
  if (!value.isWellFormed()) throw InvalidArgumentError.of(argument, value, 'has a lone surrogate, which is no Unicode text')
  return value
}

/** A number of milliseconds, or nothing. @internal */
export function time(argument: string, value: unknown): number | undefined {
  return value === undefined ? undefined : (ofKind(argument, value, 'number') as number)
}

/** True, false, or nothing. @internal */
export function flag(option: string, value: unknown): boolean | undefined {
  return value === undefined ? undefined : (ofKind(option, value, 'boolean') as boolean)
}

/** Recognises a signal by its shape: the signal of a test environment or a polyfill is of another class than Node's. @internal */
export function isAbortSignal(value: unknown): value is AbortSignal {
  if (typeof value !== 'object' || value === null) return false
  return 'aborted' in value && 'addEventListener' in value && typeof value.addEventListener === 'function'
}
