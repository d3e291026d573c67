// The types, as users' compilers see them.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import test from 'node:test'
import { promisify } from 'node:util'

import { Client } from 'locktender'
import typescript from 'typescript'

import { publicTypes, committed } from '../../bindings-node/public-types.mjs'
import { root } from './support/checkout.mjs'
import { long } from './support/long.mjs'

const manifest = createRequire(import.meta.url)('locktender/package.json')
const STRICT = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--target', 'es2022', '--lib', 'es2022,esnext.disposable']
const MODULES = {
  'as an ES module and as CommonJS': [['.mts', '.cts'], '--module', 'node16'],
  // What `module: commonjs` means before TypeScript 6, as in NestJS' template: it knows no `exports`.
  'as node10 finds modules': [['.ts'], '--module', 'commonjs', '--moduleResolution', 'node10', '--ignoreDeprecations', '6.0'],
  'for a bundler': [['.ts'], '--module', 'esnext', '--moduleResolution', 'bundler'],
}
// The oldest that the package allows, and those of the checkout, which the other packages need. This compiler finds mistakes in the former.
const OLDEST = 'types-node-18'
const TYPES = { 'the oldest types of Node': [OLDEST, ['uses']], 'newer types of Node': ['node', ['uses', 'beside']] }

for (const [way, [endings, ...module]] of Object.entries(MODULES)) {
  for (const [age, [types, sources]] of Object.entries(TYPES)) {
    // Which types of Node there are and how modules are found have nothing to do with each other.
    const isLong = types === OLDEST && !module.includes('node16')
    test(`users' code compiles ${way} with ${age}, and so do the library's own declarations`, isLong ? long : {}, async (t) => {
      // Within the checkout, for the other packages.
      const directory = mkdtempSync(path.join(root, 'tests/node/types/compiled-'))
      t.after(() => rmSync(directory, { recursive: true }))
      mkdirSync(path.join(directory, 'node_modules'))
      symlinkSync(root, path.join(directory, 'node_modules/locktender'))
      const files = sources.flatMap((source) => endings.map((ending) => [source, path.join(directory, `${source}${ending}`)]))
      for (const [source, file] of files) copyFileSync(path.join(root, `tests/node/types/${source}.ts`), file)
      const command = [path.join(root, 'node_modules/typescript/bin/tsc'), ...STRICT, '--types', types, ...module, ...files.map(([, file]) => file)]
      const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: root }).catch((error) => error)
      assert.deepEqual(stdout.split('\n').filter((line) => /^\S/.test(line) && !line.startsWith(`node_modules/${OLDEST}/`)), [])
    })
  }
}

test('the oldest types are those of the peer dependency', () => {
  assert.equal(`npm:@types/node@${manifest.peerDependencies['@types/node'].replace('>=', '')}.0.0`, manifest.devDependencies[OLDEST])
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
