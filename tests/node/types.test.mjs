// The types, as users' compilers see them.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { promisify } from 'node:util'

import { Client } from 'locktender'
import typescript from 'typescript'

import { publicTypes, committed } from '../../bindings-node/public-types.mjs'
import { root } from './support/checkout.mjs'

const STRICT = ['--noEmit', '--strict', '--exactOptionalPropertyTypes',
  '--target', 'es2022', '--lib', 'es2022,esnext.disposable', '--types', 'node',
  '--module', 'node16']

test("users' code compiles, as an ES module and as CommonJS, with the library's own declarations", async (t) => {
  // Within the checkout, where `locktender` is this package.
  const directory = mkdtempSync(path.join(root, 'tests/node/types/compiled-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const files = ['uses.mts', 'uses.cts'].map((name) => path.join(directory, name))
  for (const file of files) copyFileSync(path.join(root, 'tests/node/types/uses.ts'), file)
  const command = [path.join(root, 'node_modules/typescript/bin/tsc'), ...STRICT, ...files]
  const { code = 0, stdout } = await promisify(execFile)(process.execPath, command, { cwd: root }).catch((error) => error)
  assert.deepEqual([code, stdout], [0, ''])
})

test('`await using` gives a lock back where the language has to be compiled down', async () => {
  const written = `
    export async function uses(client: Client): Promise<[number, boolean | null]> {
      await using held = await client.lock('down').acquire()
      return [held.fence, await client.lock('down').tryAcquire().then((busy) => busy === null)]
    }
    type Client = import('locktender').Client`
  const { outputText } = typescript.transpileModule(written, { compilerOptions: { target: typescript.ScriptTarget.ES2022, module: typescript.ModuleKind.ESNext } })
  assert.doesNotMatch(outputText, /await using/)
  const { uses } = await import(`data:text/javascript,${encodeURIComponent(outputText)}`)
  const client = new Client('memory://compiled-down')
  const [fence, busy] = await uses(client)
  assert.ok(fence > 0 && busy)
  assert.equal(await client.lock('down').inspect(), null)
  await client.close()
})

test('the public types are those that are committed', () => {
  const hint = 'If this change is meant: `npm run build:facade && npm run build:types`, and read the diff.'
  assert.equal(publicTypes(), readFileSync(committed, 'utf8'), hint)
})
