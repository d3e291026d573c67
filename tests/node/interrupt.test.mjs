// Ctrl-C, with and without a handler. The numbers are those of tests/faults.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'

import { Client } from 'locktender'

import { start } from './support/script.mjs'
import { sharedServer } from './support/server.mjs'

const server = await sharedServer()
const client = new Client(server.url)
after(() => client.close())

// The signal is real: it comes while acquires are on their way, a body runs, and one waits for ever.
const UNDER_WAY = `
  const client = new Client(url, { ttlMs: ttl })
  const held = await client.lock(name + ' held').acquire()
  client.withLock(name + ' body', () => new Promise(() => {})).catch((error) => say(error))
  client.lock(name + ' held').acquire().catch((error) => say(error))
  for (let at = 0; at < 30; at++) client.lock(name + ' ' + at).acquire()
  process.kill(process.pid, 'SIGINT')
  await sleep(10_000)`

const names = (t) => [' held', ' body', ...Array.from({ length: 30 }, (_, at) => ` ${at}`)].map((end) => t.name + end)

test('f24: Ctrl-C with a handler that exits gives all of it back', async (t) => {
  const program = `const ttl = 60_000; process.once('SIGINT', () => process.exit(130)); ${UNDER_WAY}`
  assert.deepEqual(await start(t, program, server, t.name).ending(130), [])
  assert.equal(await server.command('EXISTS', ...names(t)), 0)
})

test('f28: Ctrl-C with a handler that closes the client ends waits and bodies, and then the process', async (t) => {
  const program = `
    const client = new Client(url, { ttlMs: 60_000 })
    process.once('SIGINT', () => client.close().then(() => say('closed')))
    await client.lock(name).acquire()
    client.lock(name).acquire().catch((error) => say(error.code))
    process.kill(process.pid, 'SIGINT')`
  assert.deepEqual((await start(t, program, server, t.name).ending()).sort(), ['CLOSED', 'closed'])
  assert.equal(await server.command('EXISTS', t.name), 0)
})

test('f08: Ctrl-C without a handler ends the process at once, and its locks are free within one ttl', async (t) => {
  assert.deepEqual(await start(t, `const ttl = 1_000; ${UNDER_WAY}`, server, t.name).ending('SIGINT'), [])
  const rivals = names(t).map((name) => client.withLock(name, { waitMs: 10_000 }, () => undefined))
  await Promise.all(rivals)
})
