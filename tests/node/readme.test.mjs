// The README's JavaScript: it runs unchanged.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'

import { root } from './support/checkout.mjs'
import { sharedServer } from './support/server.mjs'

const readme = readFileSync(path.join(root, 'README.md'), 'utf8')
const blocks = [...readme.matchAll(/^```js\n(.*?)^```$/gms)].map((match) => match[1])

/** Runs a block as a module of its own, in the checkout, where `locktender` is this package. */
function run(block, url) {
  const environment = { ...process.env, LOCKTENDER_URL: url }
  const options = { cwd: root, env: environment, timeout: 60_000 }
  return promisify(execFile)(process.execPath, ['--input-type=module', '--eval', block], options)
}

after(async () => (await sharedServer()).close())

test('the README has the JavaScript that is run here', () => {
  assert.equal(blocks.length, 1)
})

for (const [number, block] of blocks.entries()) {
  test(`block ${number} runs as pasted`, async () => {
    const { stdout, stderr } = await run(block, (await sharedServer()).url)
    assert.equal(stderr, '')
    assert.match(stdout, /^writing with fence \d+\n\{ ran: true, value: 'done' \}\nwriting with fence \d+\n$/)
  })

  test(`block ${number} runs without a server`, async () => {
    const { stderr } = await run(block, `memory://${randomUUID()}`)
    assert.equal(stderr, '')
  })
}
