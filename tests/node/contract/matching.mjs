// Matching: a step's values with their variables filled in, and whether the seen values are the expected ones.

const NUMBERS = { nan: NaN, inf: Infinity, '-inf': -Infinity }

/** `$name` and what steps have kept. */
export class Variables {
  #values = new Map()

  set(key, value) {
    this.#values.set(`$${key}`, value)
  }

  /** The value with every variable, repeated text and special number in it replaced. */
  fill(value) {
    if (typeof value === 'string') return this.#values.get(value) ?? NUMBERS[value] ?? this.#fillText(value)
    if (Array.isArray(value)) return value.map((item) => this.fill(item))
    if (value === null || typeof value !== 'object') return value
    if ('repeat' in value) return value.repeat.repeat(value.times)
    if ('code_unit' in value) return String.fromCharCode(value.code_unit)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, this.fill(item)]))
  }

  /** Longer names first, so that `$name` doesn't eat the start of `$names`. */
  #fillText(text) {
    const keys = [...this.#values.keys()].sort().reverse()
    return keys.reduce((text, key) => text.replaceAll(key, () => String(this.#values.get(key))), text)
  }
}

/** An option's name as Node spells it; other text stays as it is. */
export function spelled(text) {
  return /^[a-z]+(_[a-z]+)+$/.test(text) ? text.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()) : text
}

/** Why `seen` is not what is expected, or undefined if it is. */
export function mismatch(expected, seen) {
  const rule = rules.find(({ applies }) => applies(expected, seen))
  if (rule) return rule.holds(expected, seen) ? undefined : difference(expected, seen)
  if (seen === null || typeof seen !== 'object') return difference(expected, seen)
  for (const [key, value] of Object.entries(expected)) {
    const why = mismatch(value, seen[key] ?? null)
    if (why) return `${key}: ${why}`
  }
}

function difference(expected, seen) {
  return `expected ${JSON.stringify(expected)}, saw ${JSON.stringify(seen)}`
}

const isNumber = (value) => typeof value === 'number'
const has = (key) => (expected) => expected !== null && typeof expected === 'object' && key in expected

const rules = [
  { applies: (expected) => expected === '*', holds: (_, seen) => seen !== null },
  {
    applies: (expected, seen) => Array.isArray(expected) && expected.length === 2 && [...expected, seen].every(isNumber),
    holds: ([low, high], seen) => low <= seen && seen <= high,
  },
  {
    applies: Array.isArray,
    holds: (expected, seen) =>
      Array.isArray(seen) && seen.length === expected.length && expected.every((item, at) => !mismatch(item, seen[at])),
  },
  { applies: has('above'), holds: ({ above }, seen) => isNumber(seen) && seen > above },
  { applies: has('below'), holds: ({ below }, seen) => isNumber(seen) && seen < below },
  { applies: has('has'), holds: ({ has }, seen) => has.every((part) => seen?.includes(spelled(part))) },
  { applies: has('lacks'), holds: ({ lacks }, seen) => typeof seen === 'string' && !lacks.some((part) => seen.includes(part)) },
  { applies: has('says'), holds: ({ says }, seen) => isSaid(says.node, seen) },
  { applies: has('owner_with'), holds: ({ owner_with: wanted }, seen) => ownerHas(wanted, seen) },
  { applies: (expected) => expected === null || typeof expected !== 'object', holds: (expected, seen) => expected === seen },
]

/** Whether a text is what is expected, in which `…` stands for anything. */
function isSaid(expected, seen) {
  const pattern = expected.split('…').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('.*')
  return typeof seen === 'string' && new RegExp(`^${pattern}$`, 'su').test(seen)
}

/** Reads an owner value by other means than the library's. */
function ownerHas(wanted, seen) {
  const fields = Object.fromEntries(String(seen).split(' ').map((field) => field.split(/=(.*)/s, 2)))
  return Object.keys(fields).sort().join() === Object.keys(wanted).sort().join() && !mismatch(wanted, fields)
}
