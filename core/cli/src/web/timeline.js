// Timeline: the picture of each lock, with a row for each application. Bars are drawn once, and then only moved.

const SVG = 'http://www.w3.org/2000/svg'
/** The height of a row. On a phone its name stands above it. */
const row = { height: 30, top: 0 }
const WORDS = {
  released: 'released', handed_over: 'handed over', lost: 'lost', overlapped: 'overlapped', expired: 'expired', dropped: 'dropped', acquired: 'got it',
  timed_out: 'timed out', not_acquired: 'found it held', cancelled: 'cancelled', acquire_failed: 'failed', unheard: 'not heard of any more', done: 'the job is done',
  dead: 'the job is dead', skipped: 'nothing to run', leader: 'an observer saw who leads',
}
/** What stands at the end of a bar, since colour alone says nothing. */
const SIGNS = { lost: '✕ lost', overlapped: '✕ overlap', expired: '! expired', dropped: '† dropped', timed_out: '◦', acquire_failed: '!', unheard: '? unheard' }

/** The part of time that is shown. */
const view = { end: 0, width: 60_000, pixels: 600 }

const cards = new Map()

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...children)
  return made
}

/** The patterns of bars, once for the page. */
function patterns() {
  const pattern = (id, size, path) =>
    svg('pattern', { id, width: size, height: size, patternUnits: 'userSpaceOnUse' }, svg('rect', { width: size, height: size }), svg('path', { d: path }))
  return svg('svg', { class: 'patterns', 'aria-hidden': 'true', width: 0, height: 0 },
    svg('defs', {},
      pattern('waits', 6, 'M1 3h3'),
      pattern('over', 8, 'M-2 2l4-4M0 8l8-8M6 10l4-4'),
      pattern('overlapped', 8, 'M0 0l8 8M8 0l-8 8')))
}

function card(name) {
  const known = cards.get(name)
  if (known) return known
  const made = {
    name,
    state: element('p', { className: 'state' }),
    rows: element('div', { className: 'rows' }),
    bars: svg('g'),
    table: element('tbody'),
    drawnAt: -1,
  }
  made.picture = svg('svg', { role: 'img', height: 30 }, made.bars)
  const head = element('tr')
  for (const title of ['Application', 'Says', 'What', 'From', 'For', 'Fence', 'End']) head.append(element('th', { scope: 'col', textContent: title }))
  const caption = element('caption', { className: 'quiet', textContent: `The holds and waits of ${short(name)} in the time that is shown` })
  const table = element('div', { className: 'scroll' }, element('table', {}, caption, element('thead', {}, head), made.table))
  made.details = element('details', {}, element('summary', { textContent: 'As a table' }), table)
  made.details.addEventListener('toggle', () => tabulate(made))
  made.root = element('article', { className: 'lock' },
    element('header', {}, element('h3', {}, element('bdi', { textContent: short(name), title: plain(name) })), made.state),
    element('div', { className: 'picture' }, made.rows, made.picture), made.details)
  cards.set(name, made)
  return made
}

function spansInView(name) {
  const from = view.end - view.width * 1.5
  const spans = [...(state.names.get(name)?.values() ?? [])]
  return spans.filter((span) => (span.to ?? Infinity) >= from)
}

/** Shows a lock's bars: drawn again only if they have changed, or if the view has moved far. */
function draw(made) {
  if (Math.abs(view.end - made.drawnAt) > view.width / 4) redraw(made)
  made.bars.setAttribute('transform', `translate(${view.pixels - (view.end - made.drawnAt) / view.width * view.pixels} 0)`)
}

function redraw(made) {
  made.drawnAt = view.end
  const spans = spansInView(made.name)
  const rows = [...new Set(spans.map((span) => span.lane))].sort()
  made.rows.replaceChildren(...rows.map((name) => element('span', { className: 'row', title: name }, element('bdi', { textContent: name }))))
  made.picture.setAttribute('height', Math.max(1, rows.length) * row.height)
  const bars = rows.map((_, number) => svg('path', { class: 'line', d: `M-1e5 ${(number + 1) * row.height - 0.5}h2e5` }))
  // Signs come last: a later bar must not hide one.
  const signs = []
  for (const span of spans) bars.push(bar(span, rows.indexOf(span.lane) * row.height + row.top, signs))
  made.bars.replaceChildren(...bars, ...signs)
  say(made, spans, rows)
}

const x = (at) => ((at - view.end) / view.width) * view.pixels

/** A span: thin and above what the servers show, thick and below what the client tells, if clients do. */
function bar(span, top, signs) {
  const hasClients = state.feed !== 'nowhere'
  const isServer = span.source === 'server'
  const [y, height] = !hasClients ? [5, 19] : isServer ? [4, 6] : [12, 14]
  const open = isServer && isStale() ? state.looked_at : view.end + view.width
  const from = x(span.from)
  const to = Math.max(from + 2, x(span.to ?? open))
  const over = overOf(span)
  const kind = span.what === 'waits' ? 'waits' : `holds ${span.end === 'dropped' ? 'dropped' : ''}`
  const made = svg('g', { class: `${kind} ${hasClients && isServer ? 'thin' : ''}` }, svg('title'))
  // A hold that goes on is longer by now.
  made.addEventListener('pointerenter', () => write(made.firstChild, sentence(span)))
  const rect = (kind, from, to) => svg('rect', { class: kind, x: from, y: top + y, width: Math.max(2, to - from), height, rx: 2 })
  made.append(rect('whole', from, to))
  if (over !== null) made.append(rect(span.overlapped ? 'overlapped' : 'over', Math.max(from, x(over)), to))
  const label = (text, at, kind) => {
    const written = svg('text', { class: kind, x: at, y: top + y + height / 2 + 3.5 })
    written.textContent = text
    return written
  }
  const free = (over === null ? to : x(over)) - from
  if (span.what === 'holds' && (!isServer || !hasClients) && free > 62) made.append(label(shortFence(span.fence), from + 5, 'fence'))
  if (span.to !== null && SIGNS[span.end]) signs.push(label(SIGNS[span.end], to + 3, 'sign'))
  return made
}

function ending(span) {
  const word = WORDS[span.end] ?? span.end
  const over = overOf(span)
  if (over === null) return word
  const late = `${time((span.to ?? state.now) - over)} after it was over`
  return word ? `${word}, ${late}` : `still believes it, ${late}`
}

const lasted = (span) => time((span.to ?? (span.source === 'server' ? seenAt() : state.now)) - span.from)

function sentence(span) {
  const who = span.who || span.lane
  const by = span.source === 'server' ? 'by the servers' : 'by the client'
  const what = span.what === 'holds' ? 'holds' : 'waits for'
  const end = ending(span)
  const open = report ? ', not ended' : ' until now'
  return `${who} ${what} ${short(span.lock)} from ${clock(span.from, 3)} for ${lasted(span)}${span.to === null ? open : ''}, ${by}` +
    `${span.fence ? `, fence ${span.fence}` : ''}${end ? `: ${end}` : ''}`
}

/** The state of a lock in words, for all who don't see the picture. */
function say(made, spans, rows) {
  const lock = state.locks.get(made.name)
  const waiting = lock?.waiters ? `, ${lock.waiters} waiting` : ''
  const trouble = Math.max(0, ...spans.map(troubleOf))
  const words = [(isStale() ? 'was ' : '') + (lock ? `held by ${lock.lane}${waiting}` : 'free')]
  if (trouble) words.push(`trouble at ${clock(trouble)}`)
  made.state.replaceChildren(element('bdi', { textContent: words[0], className: lock ? 'held' : 'free' }))
  if (trouble) made.state.append(element('strong', { className: 'trouble', textContent: `! ${words[1]}` }))
  made.picture.setAttribute('aria-label', `${short(made.name)}: ${words.join(', ')}. Lanes: ${rows.join(', ') || 'none'}. The table below has each time.`)
}

/** Shows the spans as a table, if a person has opened it. */
function tabulate(made) {
  if (!made.details.open) return
  const spans = spansInView(made.name).sort((one, other) => other.from - one.from).slice(0, 100)
  fill(made.table, spans.map((span) => {
    const cells = [span.who || span.lane, span.source === 'server' ? 'servers' : 'client', span.what, clock(span.from, 3),
      lasted(span) + (span.to !== null ? '' : report ? ', not ended' : ', continues'), span.fence ?? '', ending(span)]
    return [span.id, troubleOf(span) ? 'trouble' : '', cells.map((text) => [text])]
  }))
}

/** The clock above the pictures. */
function axis(place) {
  // A date needs its place, too.
  const room = day(view.end - view.width) ? 130 : 84
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200].map((step) => step * 1_000)
  const least = (room / view.pixels) * view.width
  const step = steps.find((step) => step > least) ?? Math.ceil(least / 86_400_000) * 86_400_000
  const marks = []
  for (let at = Math.floor(view.end / step) * step; at > view.end - view.width; at -= step) marks.push(at)
  const made = svg('svg', { height: 22 })
  for (const at of marks) {
    const place = view.pixels + x(at)
    made.append(svg('path', { class: 'line', d: `M${place} 16v6` }))
    if (place < room / 2 - 12 || place > view.pixels - room / 2 + 16) continue
    const text = svg('text', { x: place, y: 12, 'text-anchor': 'middle' })
    text.textContent = clock(at)
    made.append(text)
  }
  place.replaceChildren(made)
}

