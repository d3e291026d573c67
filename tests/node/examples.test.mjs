// Examples: every Node example runs, on a real server.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { promisify } from 'node:util'

import { root } from './support/checkout.mjs'
import { startServer } from './support/server.mjs'

const examples = path.join(root, 'examples/node')

for (const example of readdirSync(examples)) {
  test(example, async (t) => {
    const { url } = await startServer(t)
    const env = { ...process.env, LOCKTENDER_URL: url }
    const { stderr } = await promisify(execFile)(process.execPath, [path.join(examples, example)], { env, timeout: 60_000 })
    assert.equal(stderr, '')
  })
}
