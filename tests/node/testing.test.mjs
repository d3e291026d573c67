// The scripted server for users' own tests.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { promisify } from 'node:util'

import { AcquireTimeoutError, Client, DeniedError, InvalidArgumentError } from 'locktender'
import { ScriptedServer } from 'locktender/testing'

import { root } from './support/checkout.mjs'
import { until } from './support/observe.mjs'

const page = readFileSync(path.join(root, 'docs/testing.md'), 'utf8')

test('it says what it is told, and then behaves', async () => {
  const server = new ScriptedServer(`
    acquire: busy owner=somebody ttl=500
    acquire: fail denied
  `)
  const client = new Client(server)
  assert.equal(server.unplayed, 2)
  assert.equal(await client.lock('orders').tryAcquire(), null)
  await assert.rejects(client.lock('orders').tryAcquire(), DeniedError)
  const owner = await client.withLock('orders', (held) => held.owner)
  assert.equal(server.unplayed, 0)
  assert.deepEqual(server.seen.map(({ op }) => op), ['acquire', 'acquire', 'acquire', 'release'])
  assert.deepEqual(server.seen.at(-1), { op: 'release', lockName: 'orders', owner })
})

test('a loss is scripted', async () => {
  const client = new Client(new ScriptedServer('always extend: gone'))
  const held = await client.lock('orders', { ttlMs: 2_500 }).acquire()
  await until(() => held.signal.aborted)
  assert.equal(held.signal.reason.reason, 'missing')
})

test('several of them are a quorum', async () => {
  const servers = [1, 2, 3].map((at) => new ScriptedServer('always acquire: busy owner=x ttl=500', { name: `s${at}` }))
  await assert.rejects(new Client(servers).lock('orders', { waitMs: 0 }).acquire(), AcquireTimeoutError)
  assert.ok(servers.every(({ seen }) => seen.length))
})

test('steps are added, and an answer that never comes is waited for as long as it says', async () => {
  const server = new ScriptedServer(undefined, { name: 'later', responseTimeoutMs: 50 })
  assert.equal(server.play('acquire: silence'), server)
  assert.ok((await new Client(server).lock('orders', { waitMs: 5_000 }).acquire()).isValid())
  assert.equal(server.unplayed, 0)
})

test('a script or an option that makes no sense is refused', () => {
  for (const script of ['nonsense', 'acquire: explode', 'dance: busy', 'extend: quarantine', 7, null]) {
    assert.throws(() => new ScriptedServer(script), InvalidArgumentError, String(script))
  }
  for (const options of [null, 7, { responseTimeoutMs: -1 }, { responseTimeoutMs: '1' }, { name: 7 }, { nam: 'x' }]) {
    assert.throws(() => new ScriptedServer(undefined, options), InvalidArgumentError)
  }
})

const OPERATIONS = ['acquire', 'confirm', 'extend', 'heal', 'release', 'inspect', 'end', 'reset', 'status', 'greet', 'trust']
const accepts = (line) => {
  try {
    return Boolean(new ScriptedServer(line))
  } catch (error) {
    assert.ok(error instanceof InvalidArgumentError)
    return false
  }
}

test('the page on testing tells exactly which operation each step answers', () => {
  const rows = [...page.matchAll(/^\| `([^`:]+)` \| [^|]+ \| ([^|]+) \|$/gm)]
  assert.ok(rows.length >= 15)
  let said
  for (const [, step, answers] of rows) {
    if (answers !== 'the same') said = answers === 'any' ? OPERATIONS : [...answers.matchAll(/`(\w+)`/g)].map(([, operation]) => operation)
    assert.deepEqual(OPERATIONS.filter((operation) => accepts(`${operation}: ${step}`)), said, step)
    assert.ok(accepts(`any: ${step}`) && accepts(`always any: ${step}`), step)
    assert.equal(accepts(`any: ${step} delay=5`), !step.startsWith('silence'), step)
  }
})

test('the page on testing has every line and every kind of failure', () => {
  const lines = [...page.matchAll(/^\| `([^`]+: [^`]+)` \|/gm)].map(([, line]) => line)
  assert.ok(lines.length >= 4 && lines.every(accepts))
  const [, listed] = /The kinds of `fail`: (.*?)\. /s.exec(page)
  const kinds = [...listed.matchAll(/`(\w+)`/g)].map(([, kind]) => kind)
  const source = readFileSync(path.join(root, 'core/src/op/failure.rs'), 'utf8')
  assert.deepEqual(kinds, [...source.matchAll(/^ {4}\w+ = "(\w+)",$/gm)].map(([, kind]) => kind))
  assert.ok(kinds.every((kind) => accepts(`any: fail ${kind}`)))
})

test('the page on testing shows JavaScript that runs as pasted', async () => {
  const blocks = [...page.matchAll(/^```js\n(.*?)^```$/gms)].map(([, block]) => block)
  assert.equal(blocks.length, 2)
  for (const block of blocks) {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', block], { cwd: root })
    assert.equal(stdout + stderr, '')
  }
})
