// The dashboards, as Grafana's own types describe them.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { promisify } from 'node:util'

import { root } from './support/checkout.mjs'
import { long } from './support/long.mjs'

/** What the compiler says about these texts, each as a dashboard. */
async function complaints(t, texts) {
  // Within the checkout, where `@grafana/schema` is installed.
  const directory = mkdtempSync(path.join(root, 'tests/node/types/compiled-'))
  t.after(() => rmSync(directory, { recursive: true }))
  copyFileSync(path.join(root, 'tests/node/types/dashboard.ts'), path.join(directory, 'dashboard.ts'))
  const files = texts.map((text, at) => {
    const file = path.join(directory, `${at}.ts`)
    writeFileSync(file, `import type { OurDashboard } from './dashboard'\nexport const dashboard: OurDashboard = ${text}`)
    return file
  })
  // Grafana is bundled by a bundler, and so its types are written for one.
  const words = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'esnext', '--moduleResolution', 'bundler']
  const command = [path.join(root, 'node_modules/typescript/bin/tsc'), ...words, ...files]
  const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: root }).catch((error) => error)
  return stdout
}

const written = (source) => readFileSync(path.join(root, `examples/dashboards/grafana-${source}.json`), 'utf8')

test('Grafana has every setting that the dashboards use', long, async (t) => {
  assert.equal(await complaints(t, ['prometheus', 'influxdb'].map(written)), '')
})

test('a setting that Grafana does not have is found', long, async (t) => {
  const [wrongName, wrongValue] = [['"showHeader"', '"showHeading"'], ['"drawStyle": "bars"', '"drawStyle": "bar"']].map(([right, wrong]) => {
    const text = written('prometheus')
    assert.ok(text.includes(right))
    return text.replace(right, wrong)
  })
  const found = await complaints(t, [wrongName, wrongValue])
  assert.match(found, /0\.ts.*'"showHeading"' does not exist/)
  assert.match(found, /1\.ts.*'"bar"' is not assignable/)
})
