// docs/containers.md: a worker that is told to end by SIGTERM frees its lock at once.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'

import { root } from './support/checkout.mjs'
import { PATIENCE_MS, until } from './support/observe.mjs'
import { startServer } from './support/server.mjs'

const [, program] = /^```js\n(.*?)^```$/ms.exec(readFileSync(path.join(root, 'docs/containers.md'), 'utf8'))

test('a worker that works or waits ends by SIGTERM, and frees its lock', async (t) => {
  const server = await startServer(t)
  const start = () => {
    const env = { ...process.env, LOCKTENDER_URL: server.url }
    const limit = { timeout: 2 * PATIENCE_MS, killSignal: 'SIGKILL' } // only a worker that does not end needs it
    const worker = spawn(process.execPath, ['--input-type=module', '--eval', program], { cwd: root, env, stdio: ['ignore', 'ignore', 'pipe'], ...limit })
    t.after(() => worker.kill('SIGKILL'))
    return worker
  }
  const end = async (worker) => {
    worker.kill('SIGTERM')
    const [errors, [code, signal]] = await Promise.all([worker.stderr.toArray(), once(worker, 'exit')])
    assert.deepEqual([signal ?? code, errors.join('')], [0, ''])
  }

  const works = start()
  await until(() => server.command('EXISTS', 'reports'), PATIENCE_MS)
  const waits = start()
  await until(async () => (await server.line('reports')).length, PATIENCE_MS)
  await end(waits)
  assert.equal(await server.command('EXISTS', 'reports'), 1)
  await end(works)
  assert.equal(await server.command('EXISTS', 'reports'), 0)
})
