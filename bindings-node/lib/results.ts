import { types } from 'node:util'

import { InvalidArgumentError } from './errors.js'
import { messageOf } from './messages.js'

/** A result as JSON text, none for `undefined`. What JSON would change silently is refused. @internal */
export function textOf(result: unknown): string | undefined {
  if (result === undefined) return undefined
  let text: string | undefined
  let why = 'it is no data'
  try {
    text = JSON.stringify(result, checked)
  } catch (error) {
    why = messageOf(error)
  }
  // JSON.stringify gives nothing for a function or a symbol, whatever its type says.
  if (text === undefined) throw InvalidArgumentError.of('result', result, `JSON can't express it: ${why}`)
  return text
}

/** The value of a result's text. Another program may have written a text that is no JSON. @internal */
export function parsed(text: string | null): unknown {
  if (text === null) return null
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** A replacer of JSON.stringify that replaces nothing: it throws for a value that would come back as another. */
function checked(this: unknown, key: string, value: unknown): unknown {
  const what = lost(value) ?? (types.isDate((this as Record<string, unknown>)[key]) && value === null ? 'an invalid Date' : undefined)
  if (what !== undefined) throw new Error(key === '' ? `it is ${what}` : `at ${JSON.stringify(key)} it is ${what}`)
  if (!key.isWellFormed()) throw new Error(`the key ${JSON.stringify(key)} has a lone surrogate`)
  return value
}

/** What JSON would make something else of. That `undefined` becomes `null`, or no property, changes nothing that matters. */
function lost(value: unknown): string | undefined {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? undefined : String(value)
    case 'string':
      return value.isWellFormed() ? undefined : 'a text with a lone surrogate'
    case 'function':
    case 'symbol':
      return `a ${typeof value}`
    case 'object':
      return value !== null && OPAQUE.some((is) => is(value)) ? `of the class ${nameOf(value)}` : undefined
    default:
      return undefined
  }
}

// Their content is in no property, or is not all that they are.
const OPAQUE: readonly ((value: object) => boolean)[] = [
  types.isMap,
  types.isSet,
  types.isWeakMap,
  types.isWeakSet,
  types.isRegExp,
  types.isNativeError,
  types.isPromise,
  types.isAnyArrayBuffer,
  ArrayBuffer.isView,
]

function nameOf(value: object): string {
  return Object.prototype.toString.call(value).slice(8, -1)
}
