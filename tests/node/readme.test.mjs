// The JavaScript of the README and of the pages of docs/: it runs unchanged.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { promisify } from 'node:util'

import { root } from './support/checkout.mjs'
import { startServer } from './support/server.mjs'

/** Each page, and what its block prints. */
const pages = {
  'README.md': /^writing with fence \d+\n$/,
  'bindings-node/README.md': /^writing with fence \d+\n\{ ran: true, result: 'filled' \}\ntrue null tidied\nwriting with fence \d+\n$/,
  'docs/node-redis.md': /^stock 9\n$/,
  'docs/cron.md': /^tidying with fence \d+\ntrue null \{ tidied: 3 \}\n$/,
}

/** Runs a block as a module of its own, in the checkout, where `locktender` is this package. */
function run(block, url) {
  const environment = { ...process.env, LOCKTENDER_URL: url }
  const options = { cwd: root, env: environment, timeout: 60_000 }
  return promisify(execFile)(process.execPath, ['--input-type=module', '--eval', block], options)
}

for (const [page, says] of Object.entries(pages)) {
  const text = readFileSync(path.join(root, page), 'utf8')
  const [block, ...others] = [...text.matchAll(/^```js\n(.*?)^```$/gms)].map((match) => match[1])
  assert.deepEqual(others, [], `${page}: only one block is run here`)

  test(`the block of ${page} runs as pasted`, async (t) => {
    const { stdout, stderr } = await run(block, (await startServer(t)).url)
    assert.equal(stderr, '')
    assert.match(stdout, says)
  })

  // The other client needs one.
  if (page === 'docs/node-redis.md') continue
  test(`the block of ${page} runs without a server`, async () => {
    const { stderr } = await run(block, `memory://${randomUUID()}`)
    assert.equal(stderr, '')
  })
}

/** The blocks of docs/migrating.md that are ours, with what stands around them, and what they print. */
const [, job, cron] = [...readFileSync(path.join(root, 'docs/migrating.md'), 'utf8').matchAll(/^```js\n(.*?)^```$/gms)].map((match) => match[1])
const migrated = [
  ['a job runs', `const send = async (isLast) => console.log(isLast)\n${job}${job}`, 'false\n'],
  [
    'a job whose attempts are used up says so',
    `const send = () => Promise.reject(new Error('no route'))
    for (let attempt = 0; attempt < 5; attempt++) { try { ${job} } catch {} }
    console.error = console.log
    ${job}`,
    /^nobody could send it: .*no route\n$/,
  ],
  [
    'a cron line runs once',
    `const tidy = () => console.log('tidied')
    class CronJob { constructor(_line, tick) { this.start = tick } }
    ${cron}
    await new Promise((resolve) => setTimeout(resolve, 0))
    while ((await client.cronJob('nightly').status()).state !== 'done');`,
    'tidied\n',
  ],
]
for (const [title, program, says] of migrated) {
  test(`${title}, as docs/migrating.md shows it`, async (t) => {
    const whole = `import { Client } from 'locktender'\nconst client = new Client()\n${program}\nawait client.close()`
    const { stdout, stderr } = await run(whole, (await startServer(t)).url)
    assert.equal(stderr, '')
    assert.match(stdout, typeof says === 'string' ? new RegExp(`^${says}$`) : says)
  })
}
