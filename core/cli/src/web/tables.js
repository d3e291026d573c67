
// Tables: their elements stay when their texts change, or nobody could select one, and a screen reader would lose its place.

/** The rows of each table, by their keys. */
const rowsOf = new WeakMap()

/** Puts the elements into a place, in this order. Those that are in order already are not touched. */
function arrange(place, elements) {
  const wanted = new Set(elements)
  for (const old of [...place.children]) if (!wanted.has(old)) old.remove()
  for (const [at, each] of elements.entries()) if (place.children[at] !== each) place.insertBefore(each, place.children[at] ?? null)
}

/** Sets properties that differ. */
function set(made, properties) {
  for (const [name, value] of Object.entries(properties)) if (made[name] !== value) made[name] = value
}

function write(made, text) {
  if (made.textContent === String(text)) return
  // The text itself stays, too, for a selection that begins or ends in it.
  if (made.firstChild) made.firstChild.data = text
  else made.textContent = text
}

/** Fills a table. A line is the key of a row, the class of a row, and cells: text, class, and the whole text if that is cut. */
function fill(body, lines) {
  const before = rowsOf.get(body) ?? new Map()
  const rows = new Map(lines.map(([key, kind, cells]) => {
    const row = before.get(key) ?? element('tr', {}, ...cells.map(() => element('td', {}, element('bdi'))))
    set(row, { className: kind })
    for (const [at, [text, kind = '', title = String(text)]] of cells.entries()) {
      set(row.cells[at], { className: kind })
      write(row.cells[at].firstChild, text)
      set(row.cells[at].firstChild, { title })
    }
    return [key, row]
  }))
  rowsOf.set(body, rows)
  arrange(body, [...rows.values()])
}

/** What is counted, by its name. */
const figures = new Map()

/** A number. One of locks is a button that shows these alone. */
function figure([id, name, value, kind = '']) {
  if (!figures.has(id)) {
    const number = element(CHOICES[id] ? 'button' : 'span', { type: 'button', title: CHOICES[id] ? 'Show these alone, or all again' : '' })
    if (CHOICES[id]) number.addEventListener('click', () => choose(id))
    figures.set(id, element('div', {}, element('dt'), element('dd', {}, number)))
  }
  const made = figures.get(id)
  const number = made.lastChild.firstChild
  set(made, { className: kind })
  write(made.firstChild, name)
  write(number, (kind ? '! ' : '') + value)
  if (CHOICES[id]) set(number, { ariaPressed: String(shown.choice === id), ariaLabel: `${value} ${name}: show these alone` })
  return made
}
