// Bun and Deno, in the versions that package.json pins: each runs the same program.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { promisify } from 'node:util'

import { root } from './support/checkout.mjs'
import { until } from './support/observe.mjs'
import { startServer } from './support/server.mjs'

// Without an install script, which not every npm runs: the program lies in the package of its platform.
const [os, cpu] = [process.platform, process.arch === 'arm64' ? 'aarch64' : process.arch]
const runtimes = {
  bun: [[`@oven/bun-${os}-${cpu}/bin/bun`, 'bun/bin/bun.exe'], []],
  deno: [[`@deno/${os}-${process.arch}${os === 'linux' ? '-glibc' : ''}/deno`, 'deno/deno'], ['run', '--allow-all', '--no-lock']],
}

function executable(file) {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

for (const [name, [places, words]] of Object.entries(runtimes)) {
  const program = places.map((place) => path.join(root, 'node_modules', place)).find(executable)
  const skip = program ? false : `npm has no ${name} for ${os}-${process.arch}`
  test(`${name} locks, loses, aborts and ends`, { skip, timeout: 150_000 }, async (t) => {
    const server = await startServer(t)
    const env = { ...process.env, LOCKTENDER_URL: server.url, DENO_NO_UPDATE_CHECK: '1' }
    const smoke = path.join(root, 'tests/node/runtimes/smoke.mjs')
    const { stdout } = await promisify(execFile)(program, [...words, smoke], { cwd: root, env, timeout: 120_000 })
    const [, held] = /^ends with (.+) held$/m.exec(stdout)
    await until(async () => (await server.command('EXISTS', held)) === 0)
  })
}
