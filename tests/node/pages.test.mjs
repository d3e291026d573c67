// The JavaScript of docs/tutorials and docs/how-to: each block is right, and those that need no server print what the page shows.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { promisify } from 'node:util'

import { root } from './support/checkout.mjs'

/** Runs a block as a module of its own, in the checkout, where `locktender` is this package; or only reads it. */
function run(block, ...options) {
  const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('LOCKTENDER_')))
  const limits = { cwd: root, env: environment, timeout: 60_000 }
  const running = promisify(execFile)(process.execPath, [...options, '--input-type=module', '-'], limits)
  running.child.stdin.end(block)
  return running
}

for (const folder of ['tutorials', 'how-to']) {
  for (const name of readdirSync(path.join(root, 'docs', folder)).filter((name) => name.endsWith('.md'))) {
    const page = readFileSync(path.join(root, 'docs', folder, name), 'utf8')
    const blocks = [...page.matchAll(/(<!-- recipe: \S+ -->\n)?^```(\w+)\n(.*?)^```$/gms)].map(([, recipe, language, text]) => ({ recipe, language, text }))
    for (const [index, { recipe, language, text }] of blocks.entries()) {
      if (language !== 'js') continue
      // A named one runs in tests/site.
      if (recipe) test(`block ${index} of ${name} can be read`, async () => void (await run(text, '--check')))
      else {
        test(`block ${index} of ${name} prints what the page shows`, async () => {
          const { stdout, stderr } = await run(text)
          assert.equal(stderr, '')
          if (blocks[index + 1]?.language === 'text') assert.equal(stdout, blocks[index + 1].text)
        })
      }
    }
  }
}
