// The package as users get it: two module systems, one set of classes, and every file that is named.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import test from 'node:test'
import { promisify } from 'node:util'

import * as esm from 'locktender'
import * as esmTesting from 'locktender/testing'

import { long } from './support/long.mjs'
import { root } from './support/checkout.mjs'
import { startServer } from './support/server.mjs'

const require = createRequire(import.meta.url)
const manifest = require('locktender/package.json')

/** Every path in the conditions of `exports`. */
function pathsOf(target) {
  return typeof target === 'string' ? [target] : Object.values(target).flatMap(pathsOf)
}

test('import and require give the same classes and functions', () => {
  for (const [module, name] of [[esm, 'locktender'], [esmTesting, 'locktender/testing']]) {
    const commonJs = require(name)
    const names = Object.keys(commonJs)
    assert.ok(names.length > 0)
    assert.deepEqual(Object.keys(module).filter((each) => !['default', 'module.exports', '__esModule'].includes(each)).sort(), names.sort())
    for (const each of names) assert.equal(module[each], commonJs[each])
  }
})

test('nothing internal can be imported', () => {
  for (const inside of ['locktender/bindings-node/dist/queue.js', 'locktender/dist/queue', 'locktender/native']) {
    assert.throws(() => require(inside), { code: 'ERR_PACKAGE_PATH_NOT_EXPORTED' })
  }
})

test('what the package names is there, types first, and is packed', async () => {
  const { stdout } = await promisify(execFile)('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: root })
  const packed = new Set(JSON.parse(stdout)[0].files.map(({ path: file }) => file))
  for (const named of [manifest.main, manifest.types, ...pathsOf(manifest.exports)]) {
    assert.ok(existsSync(path.join(root, named)), named)
    assert.ok(packed.has(path.normalize(named)), `${named} is not packed`)
  }
  for (const conditions of Object.values(manifest.exports).filter((each) => typeof each === 'object')) {
    for (const each of Object.values(conditions)) assert.deepEqual(Object.keys(each), ['types', 'default'])
  }
  for (const file of ['README.md', 'LICENSE-MIT', 'LICENSE-APACHE', 'bindings-node/native/index.js']) assert.ok(packed.has(file), file)
  // The addon comes in a package of its platform: tests/interop/test_packages.py installs both.
  assert.deepEqual([...packed].filter((file) => file.endsWith('.node')), [])
  for (const file of packed) assert.match(file, /^(bindings-node\/(dist|native)\/|README|LICENSE|package\.json$)/)
})

test('a compiler that knows no `exports` finds the types of every subpath', () => {
  const subpaths = Object.entries(manifest.exports).filter(([name, target]) => name !== '.' && typeof target === 'object')
  const wanted = subpaths.map(([name, { require }]) => [name.replace('./', ''), [require.types]])
  assert.ok(wanted.length > 0)
  assert.deepEqual(manifest.typesVersions, { '*': Object.fromEntries(wanted) })
})

test('publint and Are The Types Wrong find nothing', long, async () => {
  const options = { cwd: root, env: { ...process.env, npm_config_offline: 'true' } }
  const checks = [
    ['publint/src/cli.js', ['run', '--strict']],
    ['@arethetypeswrong/cli/dist/index.js', ['--pack', '.', '--no-definitely-typed']],
  ]
  for (const [program, words] of checks) {
    const run = promisify(execFile)(process.execPath, [path.join(root, 'node_modules', program), ...words], options)
    await run.catch(({ stdout, stderr }) => assert.fail(`${program}: ${stdout}${stderr}`))
  }
})

test('two copies in one process exclude each other and end together', async (t) => {
  const copy = mkdtempSync(path.join(tmpdir(), 'locktender-'))
  t.after(() => rmSync(copy, { recursive: true }))
  for (const part of ['package.json', 'bindings-node/dist', 'bindings-node/native']) {
    cpSync(path.join(root, part), path.join(copy, 'node_modules/locktender', part), { recursive: true })
  }
  writeFileSync(path.join(copy, 'two.mjs'), `
    import assert from 'node:assert/strict'
    import { createRequire } from 'node:module'
    import { Client as Other, LockError as OtherError } from 'locktender'
    const { Client, LockError } = createRequire(process.argv[2])('locktender')
    assert.notEqual(Client, Other)
    const [client, other] = [new Client(), new Other()]
    for (let round = 0; round < 20; round += 1) {
      const held = await client.lock('two').acquire()
      assert.equal(await other.lock('two').tryAcquire(), null)
      const error = await other.lock('two', { waitMs: 0 }).acquire().catch((each) => each)
      assert.ok(error instanceof OtherError && !(error instanceof LockError))
      await held.release()
    }
    await client.lock('two').acquire()
    await other.lock('three').acquire()`)
  const server = await startServer(t)
  const env = { ...process.env, LOCKTENDER_URL: server.url }
  await promisify(execFile)(process.execPath, [path.join(copy, 'two.mjs'), path.join(root, 'package.json')], { env })
  assert.equal(await server.command('EXISTS', 'two', 'three'), 0)
})

test('the declarations import nothing that is not packed', () => {
  const declarations = ['body', 'client', 'clock', 'credentials', 'default', 'election', 'emitter', 'errors', 'events', 'hold', 'holding', 'index', 'influxdb', 'ioredis', 'job', 'lock', 'locking', 'metrics', 'multi', 'opentelemetry', 'options', 'overview', 'prometheus', 'scripted', 'servers', 'testing', 'tracing']
  for (const name of declarations) {
    const text = readFileSync(path.join(root, 'bindings-node/dist', `${name}.d.ts`), 'utf8')
    const imported = [...text.matchAll(/(?:from|import\()\s*'([^']+)'/g)].map((match) => match[1])
    for (const each of imported) {
      const own = /^\.\/(\w+)\.js$/.exec(each)
      assert.ok(each.startsWith('node:') || declarations.includes(own?.[1]), `${name}.d.ts imports ${each}`)
    }
  }
})

test('no bug can be planted in the addon', () => {
  const native = path.join(root, 'bindings-node/native')
  const addons = readdirSync(native).filter((file) => file.endsWith('.node'))
  assert.ok(addons.length > 0)
  for (const file of addons) assert.ok(!readFileSync(path.join(native, file)).includes('locktender: bugs can be planted here'), file)
})

test('a release builds every target, for both languages', () => {
  const workflow = readFileSync(path.join(root, '.github/workflows/release.yml'), 'utf8')
  for (const job of ['wheels', 'addons']) {
    const [, text] = new RegExp(`^  ${job}:\\n(.*?)(?=^  \\w+:)`, 'ms').exec(workflow)
    const targets = [...text.matchAll(/target: ([\w-]+)/g)].map((match) => match[1])
    assert.deepEqual(targets.sort(), [...manifest.napi.targets].sort(), job)
  }
})

test('the version is the workspace\'s', () => {
  const [, version] = /^\[workspace\.package\]\nversion = "([^"]+)"/m.exec(readFileSync(path.join(root, 'Cargo.toml'), 'utf8')) ?? []
  assert.equal(manifest.version, version)
})
