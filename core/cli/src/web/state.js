'use strict'
// State: what the server has sent, in one place. A part has the same shape as all of it, and is merged into it.

const MOST_SPANS = 12_000
const MOST_EVENTS = 1_000

const data = JSON.parse(document.getElementById('data').textContent)
/** What a report shows. A page that follows changes has only the proof by which it knows its program. */
const report = data.proof ? null : data
/** The page as it came, for a report of it. */
const pristine = report ? null : document.documentElement.cloneNode(true)
const { nonce } = document.currentScript

const state = {
  now: 0,
  looked_at: null,
  gap: 1_000,
  outage: null,
  /** Whether nothing comes from the program. */
  isDown: false,
  cut: false,
  feed: 'nowhere',
  numbers: {},
  source: { pattern: '*', servers: [], every: 250, version: '', host: '', prefix: '', began: 0 },
  spans: new Map(),
  /** The spans of each lock, by its name. */
  names: new Map(),
  /** The locks that are held now, by their names. */
  locks: new Map(),
  events: [],
  /** The kinds of spans that have come. */
  kinds: new Set(),
  /** Names whose picture is outdated. */
  dirty: new Set(),
}

function reset() {
  for (const kept of [state.spans, state.names, state.locks, state.kinds]) kept.clear()
  state.events = []
}

/** Takes what has changed. Returns the new events that a person should check. */
function merge(part) {
  for (const name of ['now', 'looked_at', 'gap', 'outage', 'cut', 'feed', 'numbers', 'source']) {
    if (part[name] !== undefined) state[name] = part[name]
  }
  for (const span of part.spans) {
    state.spans.set(span.id, span)
    if (!state.names.has(span.lock)) state.names.set(span.lock, new Map())
    state.names.get(span.lock).set(span.id, span)
    state.dirty.add(span.lock)
    state.kinds.add(span.what).add(span.end).add(span.overlapped ? 'overlapped' : span.over !== null && 'over')
  }
  for (const name of part.gone) state.locks.delete(name)
  for (const lock of part.locks) state.locks.set(lock.name, lock)
  // Their words change, too.
  for (const name of [...part.gone, ...part.locks.map((lock) => lock.name)]) state.dirty.add(name)
  const last = state.events.at(-1)?.n ?? 0
  const fresh = part.events.filter((event) => event.n > last)
  state.events.push(...fresh)
  if (state.events.length > MOST_EVENTS) state.events.splice(0, state.events.length - MOST_EVENTS)
  forget()
  return fresh.filter((event) => event.trouble)
}

/** Forgets the oldest spans that have ended. */
function forget() {
  if (state.spans.size <= MOST_SPANS) return
  for (const span of state.spans.values()) {
    if (state.spans.size <= MOST_SPANS * 0.9) return
    if (span.to === null) continue
    state.spans.delete(span.id)
    const own = state.names.get(span.lock)
    own.delete(span.id)
    if (own.size === 0) state.names.delete(span.lock)
    state.dirty.add(span.lock)
  }
}

/** Whether what the servers showed is too old to be true now. */
function isStale() {
  if (state.looked_at === null) return false
  return state.isDown || state.outage !== null || state.now - state.looked_at > state.gap
}

/** When the servers were last seen: now, unless that is past. */
function seenAt() {
  return isStale() ? state.looked_at : state.now
}

/** The begin of the oldest span of the locks that are wanted. */
function oldest(isWanted) {
  let first = state.now
  for (const [name, spans] of state.names) if (isWanted(name)) for (const span of spans.values()) first = Math.min(first, span.from)
  return first
}

/** The page as a report of all that it has. The program is not needed for it: it may have ended. */
function reportPage() {
  const { now, looked_at, gap, outage, cut, feed, numbers, source, events } = state
  const whole = { now, looked_at, gap, outage, cut, feed, numbers, source, events, spans: [...state.spans.values()], locks: [...state.locks.values()], gone: [] }
  const escaped = (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`
  const page = pristine.cloneNode(true)
  page.querySelector('#data').replaceChildren(JSON.stringify(whole).replaceAll('<', escaped).replace(UNPLAIN, escaped))
  const policy = page.querySelector('meta[http-equiv]')
  policy.content = policy.content.replace("connect-src 'self'", "connect-src 'none'")
  // A browser hides it from what reads the page.
  for (const part of page.querySelectorAll('style, script:not([type])')) part.setAttribute('nonce', nonce)
  return `<!doctype html>\n${page.outerHTML}\n`
}

/** A test for names: `*` is any text, `?` any one character; a text without them may stand anywhere. */
function matcher(text) {
  const wanted = text.trim()
  if (wanted === '') return () => true
  if (!/[*?]/.test(wanted)) return (name) => name.toLowerCase().includes(wanted.toLowerCase())
  const escaped = wanted.replace(/[.+^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*').replaceAll('?', '.')
  const pattern = new RegExp(`^${escaped}$`, 'is')
  return (name) => pattern.test(name)
}

/** A trouble that the picture shows from its time on; 0 if there is none. */
function troubleOf(span) {
  if (['lost', 'overlapped', 'expired', 'dropped'].includes(span.end)) return span.to
  return overOf(span) ?? 0
}

/** Since when a hold was over. Lines of other processes may come late, so an open one is only so after a second. */
function overOf(span) {
  if (span.over === null || (span.to === null && state.now - span.over < 1_000)) return null
  return span.over
}

/** What ends a line, or turns the rest around. */
const UNPLAIN = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** A name as people see it. */
function plain(name) {
  return name.replace(UNPLAIN, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`)
}

/** The same, cut in the middle: paths and URLs differ at their end. */
function short(name) {
  const text = plain(name)
  return text.length <= 120 ? text : `${text.slice(0, 70)}…${text.slice(-49)}`
}

function element(name, properties = {}, ...children) {
  const made = document.createElement(name)
  Object.assign(made, properties)
  made.append(...children)
  return made
}

const TIME = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })
const DATE = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' })

/** The day of a time, if that is not today. */
function day(at) {
  const [one, today] = [new Date(at), new Date(state.now)]
  if (one.toDateString() === today.toDateString()) return ''
  return `${(one.getFullYear() === today.getFullYear() ? DAY : DATE).format(one)} `
}

/** The zone of the times, as UTC+5:30. */
function zone() {
  const minutes = -new Date(state.now).getTimezoneOffset()
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60]
  return minutes === 0 ? 'UTC' : `UTC${minutes < 0 ? '−' : '+'}${hours}${rest ? `:${rest}` : ''}`
}

function clock(at, parts = 0) {
  return day(at) + TIME.format(at) + (parts ? '.' + String(Math.floor(at % 1_000)).padStart(3, '0').slice(0, parts) : '')
}

/** A time as people say it: 250 ms, 3.2 s, 2 min 5 s, 3 h 10 min. */
function time(ms) {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.floor(ms / 1_000)
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  return `${Math.floor(seconds / 3_600)} h ${Math.floor(seconds / 60) % 60} min`
}

/** Fences differ at their end. */
function shortFence(fence) {
  return fence && fence.length > 8 ? '…' + fence.slice(-7) : (fence ?? '')
}

