// Page: the connection, the controls and the tables.

const $ = (id) => document.getElementById(id)
const collator = new Intl.Collator(undefined, { numeric: true })
const STEP = 15
const FOREIGN = 'The program has ended, and another one answers at its address. Nothing of that is shown. Close this page.'
const ENDED = 'The program has ended, or is out of reach. Start it again: its address is new. What is here can still be saved as a report.'
/** The width of a picture on paper: a browser does not say it before it prints. The style has it, too. */
const PAPER = 560

const shown = { matches: () => true, choice: null, from: 0, most: STEP, pausedAt: null, isForeign: false, isStale: false, isPrinted: false, cards: [] }

/** Now, by the clock of the server; it stands still while nothing comes. */
let offset = 0
const clockNow = () => (report || state.isDown ? state.now : Date.now() + offset)

function take(part) {
  const troubles = merge(part)
  offset = part.now - Date.now()
  if (troubles.length === 0) return
  const { kind, lock, lane } = troubles.at(-1)
  $('alarm').textContent = `${clock(troubles.at(-1).at)}: ${WORDS[kind] ?? kind}${lock ? ` of ${short(lock)}` : ''}, ${lane}`
}

function connect() {
  if (shown.isForeign) return
  const source = new EventSource('events')
  shown.source = source
  let isProven = false
  source.addEventListener('all', (message) => {
    const whole = JSON.parse(message.data)
    isProven = whole.proof === data.proof
    state.isDown = shown.isForeign = !isProven
    if (!isProven) {
      source.close()
      return refresh()
    }
    // In a pause nothing is taken: after it all of it is asked for again.
    if (shown.pausedAt === null) {
      reset()
      take(whole)
    }
    refresh()
  })
  source.addEventListener('part', (message) => {
    if (isProven && shown.pausedAt === null) take(JSON.parse(message.data))
    refresh()
  })
  source.addEventListener('error', () => {
    state.isDown = true
    isProven = false
    refresh()
    // A browser gives up after some answers, such as that of another program on this port.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => source === shown.source && connect(), 2_000)
  })
}

const moment = (at) => `${DATE.format(at)}, ${TIME.format(at)}`

/** Whether the page is true now, and if not, why. */
function status() {
  const seen = `What the servers said is as of ${clock(state.looked_at ?? state.now)}.`
  const silent = isStale() ? `${state.outage ? `No server answers: ${state.outage}.` : 'No look at the servers has ended since.'} ${seen}` : ''
  if (report) return ['still', `Report of ${moment(shown.from)} to ${day(shown.from) ? moment(state.now) : clock(state.now)}`, silent]
  if (shown.isForeign) return ['down', 'Another program', FOREIGN]
  if (!state.now) return ['down', 'Not connected', '']
  if (state.isDown) return ['down', `Not connected since ${clock(state.now)}`, `${ENDED} ${seen}`]
  if (isStale()) return ['down', `As of ${clock(state.looked_at)}`, silent]
  return shown.pausedAt !== null ? ['still', `Paused at ${clock(shown.pausedAt)}`, ''] : ['live', 'Live', '']
}

function head() {
  const [kind, text, why] = status()
  write($('status'), text)
  set($('status'), { className: `status ${kind}` })
  write($('why'), why)
  $('why').hidden = !why
  document.body.classList.toggle('stale', isStale())
}

function save() {
  const link = element('a', { href: URL.createObjectURL(new Blob([reportPage()], { type: 'text/html' })), download: 'locktender-report.html' })
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}

function numbers() {
  const { numbers: count, feed } = state
  const waiting = [...state.locks.values()].reduce((sum, lock) => sum + lock.waiters, 0)
  const now = report || isStale() ? '' : ' now'
  const said = isStale() ? `, as of ${clock(seenAt())}` : ''
  write($('servers-title'), (now ? 'The servers say' : 'The servers said') + said)
  arrange($('servers-numbers'), [['held', `held${now}`, state.locks.size], ['waiting', `waiting${now}`, waiting]].map(figure))
  $('clients').hidden = feed === 'nowhere'
  if (feed === 'nowhere') return
  const troubles = count.lost + count.expired
  write($('clients-title'), feed === 'ended' || report || state.isDown ? 'The clients said' : 'The clients say')
  arrange($('clients-numbers'), [
    ['acquired', 'acquired', count.acquired], ['released', 'released', count.released], ['wait', 'longest wait', time(count.longest_wait)],
    ['timed_out', 'timed out', count.timed_out], ['lost', 'lost or expired', troubles, troubles ? 'over' : ''],
    ['overlapped', 'overlaps', count.overlapped, count.overlapped ? 'overlapped' : ''],
  ].map(figure))
}

function where() {
  const { pattern, servers, every, version, host, prefix } = state.source
  const keys = prefix && ` with the prefix ${prefix}`
  const seen = `${pattern === '*' ? 'all locks' : pattern}${keys} on ${servers.join(', ')}, looked at every ${time(every)}`
  const feed = { nowhere: 'no events of clients are read', open: 'events of clients are read', ended: 'the events of clients have ended' }[state.feed]
  const left = []
  if (state.numbers.skipped) left.push(`${state.numbers.skipped} lines were no events`)
  if (state.numbers.left_out) left.push(`${state.numbers.left_out} holds and waits were too many to show`)
  write($('where'), [seen, feed, ...left, `times in ${zone()}`, `locktender ${version} on ${host}`].join('; '))
}

const spansOf = (name) => [...(state.names.get(name)?.values() ?? [])]
const endedBy = (...ends) => (name) => spansOf(name).some((span) => ends.includes(span.end))

/** The locks that a number counts. */
const CHOICES = {
  held: (name) => state.locks.has(name), waiting: (name) => state.locks.get(name)?.waiters > 0, timed_out: endedBy('timed_out'),
  lost: endedBy('lost', 'expired'), overlapped: (name) => spansOf(name).some((span) => span.overlapped),
}

function choose(name) {
  shown.choice = shown.choice === name ? null : name
  again()
}

const isWanted = (name) => shown.matches(name) && (CHOICES[shown.choice]?.(name) ?? true)

/** The names in the picture, and in which order: what a person should look at comes first. */
function chosen() {
  const names = [...new Set([...state.names.keys(), ...state.locks.keys()])].filter(isWanted).sort(collator.compare)
  if ($('order').value === 'name') return names
  const rank = new Map(names.map((name) => {
    const { waiters = 0, since = state.now } = state.locks.get(name) ?? {}
    return [name, [spansOf(name).reduce((last, span) => Math.max(last, troubleOf(span)), 0), waiters, state.now - since]]
  }))
  const compare = (one, other) => [0, 1, 2].map((at) => other[at] - one[at]).find(Boolean) ?? 0
  return names.sort((one, other) => compare(rank.get(one), rank.get(other)))
}

function timeline() {
  const names = chosen()
  const made = names.slice(0, shown.most).map(card)
  for (const name of cards.keys()) if (!state.names.has(name) && !state.locks.has(name)) cards.delete(name)
  arrange($('locks'), made.map((card) => card.root))
  shown.cards = made
  $('more').hidden = names.length <= shown.most
  $('more').textContent = `Show ${Math.min(STEP * 2, names.length - shown.most)} more of ${names.length - shown.most}`
  $('none').hidden = names.length > 0
  $('none').textContent = state.names.size ? 'No lock is like that.' : 'No lock has been held since this page looks.'
}

function locksNow() {
  const locks = [...state.locks.values()].filter((lock) => isWanted(lock.name)).sort((one, other) => collator.compare(one.name, other.name))
  write($('now-words'), report || isStale() ? `Locks at ${clock(seenAt())}` : 'Locks now')
  fill($('now'), locks.slice(0, 100).map((lock) => [lock.name, '', [
    [short(lock.name), 'name', plain(lock.name)], [lock.holder], [time(seenAt() - lock.since), 'number'],
    [lock.until === null ? 'no expiry' : time(Math.max(0, lock.until - seenAt())), 'number'],
    [lock.waiters ? `${lock.waiters}: ${lock.queue.slice(0, 3).join(', ')}${lock.queue.length > 3 ? ', …' : ''}` : 'none'], [lock.fence, 'number'],
  ]]))
  const more = locks.length > 100 ? `${locks.length - 100} more are not in this table: filter them by name.` : ''
  const cut = state.cut ? 'There may be more locks on the servers: see --limit.' : ''
  $('now-note').hidden = locks.length > 0 && !more && !cut
  write($('now-note'), locks.length ? `${more} ${cut}` : report ? 'No lock was held.' : 'No lock is held.')
}

function eventTable() {
  const isOfLocks = (event) => (event.lock === null ? shown.matches === all && !shown.choice : isWanted(event.lock))
  const events = state.events.filter((event) => (!$('troubles').checked || event.trouble) && isOfLocks(event)).slice(-100).reverse()
  fill($('events'), events.map((event) => {
    const details = [event.took !== null && `took ${time(event.took)}`, event.overrun && `${time(event.overrun)} over`, event.fence && `fence ${event.fence}`, event.text]
    return [event.n, event.trouble ? 'trouble' : '', [
      [clock(event.at, 3), 'number'], [(event.trouble ? '! ' : '') + event.kind.replaceAll('_', ' ')],
      [short(event.lock ?? ''), 'name', plain(event.lock ?? '')], [event.who ?? event.lane], [details.filter(Boolean).join(', ')],
    ]]
  }))
  $('events-note').hidden = events.length > 0
  write($('events-note'), state.feed === 'nowhere' ? 'No events are read: see --events.' : 'No such event has come.')
}

const all = () => true
let refreshedAt = -1e9

/** All but the picture's movement. A few times a second at most, so that a thousand events cost no more than one. */
function refresh() {
  head()
  if (performance.now() - refreshedAt < 200 || document.hidden) return
  refreshedAt = performance.now()
  numbers()
  where()
  legend()
  timeline()
  locksNow()
  eventTable()
  const back = $('back')
  back.max = Math.max(0, Math.ceil((state.now - oldest(isWanted)) / 1_000))
  const wasStale = shown.isStale
  shown.isStale = isStale()
  for (const made of cards.values()) if (state.dirty.has(made.name) || shown.isStale !== wasStale) made.drawnAt = -1e15
  state.dirty.clear()
  for (const made of shown.cards) tabulate(made)
}

/** Moves the picture. */
function move() {
  const back = Number($('back').value) * 1_000
  view.end = (shown.pausedAt ?? clockNow()) - back
  const picture = $('locks').querySelector('.picture svg') ?? $('axis')
  view.pixels = shown.isPrinted ? PAPER : Math.max(50, picture.getBoundingClientRect().width)
  for (const made of shown.cards) draw(made)
  axis($('axis'))
  write($('end'), report || state.isDown ? clock(view.end) : back ? `${time(back)} ago` : 'now')
}

function pause(isPaused) {
  shown.pausedAt = isPaused ? (shown.pausedAt ?? clockNow()) : null
  if (!isPaused) {
    $('back').value = 0
    shown.source.close()
    connect()
  }
  $('pause').setAttribute('aria-pressed', isPaused)
  $('pause').textContent = isPaused ? 'Go on' : 'Pause'
  again()
}

function again() {
  refreshedAt = -1e9
  const isPhone = !shown.isPrinted && matchMedia('(max-width: 640px)').matches
  Object.assign(row, isPhone ? { height: 42, top: 12 } : { height: 30, top: 0 })
  for (const made of cards.values()) made.drawnAt = -1e15
  refresh()
  move()
}

const LEGEND = [['holds', 'holds'], ['waits', 'waits'], ['over', 'over, and not given back'], ['overlapped', 'overlap: another hold began meanwhile'],
  ['thin', 'thin: the servers say'], ['thick', 'thick: the client says'], ['timed_out', '◦ timed out']]

const samples = new Map(LEGEND.map(([kind, text]) => {
  if (kind === 'timed_out') return [kind, element('li', { textContent: text })]
  const height = kind === 'thin' ? 6 : 14
  const isBar = ['holds', 'waits', 'thin', 'thick'].includes(kind)
  const bar = svg('rect', { class: isBar ? 'whole' : kind, y: (14 - height) / 2, width: 26, height, rx: 2 })
  const group = svg('g', { class: kind === 'waits' ? 'waits' : `holds ${kind}` }, bar)
  return [kind, element('li', {}, svg('svg', { width: 26, height: 14, 'aria-hidden': 'true' }, group), text)]
}))

/** What the signs mean that are there. */
function legend() {
  const isThere = (kind) => (['thin', 'thick'].includes(kind) ? state.feed !== 'nowhere' : state.kinds.has(kind))
  arrange($('legend'), [...samples].filter(([kind]) => isThere(kind)).map(([, sample]) => sample))
}

document.body.append(patterns())
$('filter').addEventListener('input', (input) => {
  shown.matches = input.target.value.trim() ? matcher(input.target.value) : all
  shown.most = STEP
  again()
})
shown.matches = all
$('width').addEventListener('change', (input) => {
  view.width = Number(input.target.value) * 1_000
  again()
})
for (const id of ['order', 'troubles']) $(id).addEventListener('change', again)
$('save').addEventListener('click', save)
$('pause').addEventListener('click', () => pause(shown.pausedAt === null))
$('back').addEventListener('input', () => pause(true))
$('more').addEventListener('click', () => {
  shown.most += STEP * 2
  again()
})
addEventListener('resize', again)
for (const [kind, isPrinted] of [['beforeprint', true], ['afterprint', false]]) {
  addEventListener(kind, () => {
    shown.isPrinted = isPrinted
    again()
  })
}

if (report) {
  $('save').hidden = $('pause').hidden = true
  take(report)
  // A report shows all that it has, and a little before.
  const span = state.now - oldest(isWanted)
  shown.from = Math.min(state.source.began, state.now - span)
  view.width = Math.max(5_000, span * 1.02)
  $('width').add(new Option(`all: ${time(view.width)}`, view.width / 1_000, true, true), 0)
} else {
  connect()
  const isCalm = matchMedia('(prefers-reduced-motion: reduce)').matches
  let movedAt = 0
  const frame = (at) => {
    if (at - movedAt >= (isCalm ? 1_000 : 50) && shown.pausedAt === null) {
      movedAt = at
      move()
    }
    requestAnimationFrame(frame)
  }
  requestAnimationFrame(frame)
}
again()
