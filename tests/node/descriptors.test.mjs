// Descriptors: a closed client keeps nothing open, also while the program keeps the client. Linux lists a process's descriptors.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'

import { run, start } from './support/script.mjs'
import { sharedServer, startServer } from './support/server.mjs'

const LINUX = existsSync('/proc/self/fd') ? {} : { skip: 'no /proc' }

/**
 * `more()` is the number of descriptors that the program has now and didn't have after its first client and its first word. The core's own
 * ones begin with the first client, and stay; its sockets may end shortly after its close.
 */
const HEAD = `
const { readdirSync, readlinkSync } = await import('node:fs')
const opened = () => readdirSync('/proc/self/fd').length
const isSocket = (descriptor) => { try { return readlinkSync('/proc/self/fd/' + descriptor).startsWith('socket:') } catch { return false } }
const sockets = () => readdirSync('/proc/self/fd').filter(isSocket).length
say('begins')
const without = sockets()
const first = new Client(url)
await first.withLock(name, () => undefined)
await first.close()
while (sockets() > without) await sleep(5)
const before = opened()
const more = () => opened() - before
`

test('a client that was closed keeps no descriptor', LINUX, async (t) => {
  const program = `${HEAD}
    const kept = []
    for (let at = 0; at < 20; at += 1) {
      const client = new Client(url)
      kept.push(client)
      await client.withLock(name, () => undefined)
      await client.close()
      say(more())
    }`
  assert.deepEqual(await run(t, program, await sharedServer(), t.name), ['begins', ...Array(20).fill('0')])
})

test('neither does one of a quorum, nor one whose holds the program keeps', LINUX, async (t) => {
  const program = `${HEAD}
    const kept = []
    for (const servers of [process.argv.slice(3), url]) {
      const client = new Client(servers)
      await client.initializeQuorum()
      const released = await client.lock(name).acquire()
      await released.release()
      kept.push(client, released, await client.lock(name).acquire())
      await client.close()
      say(more())
    }`
  const quorum = await Promise.all([1, 2, 3].map(() => startServer(t)))
  const more = quorum.map((server) => server.url)
  assert.deepEqual(await run(t, program, await sharedServer(), t.name, { more }), ['begins', '0', '0'])
})

test('a client that is closed while its server is silent keeps none in the end', LINUX, async (t) => {
  const server = await startServer(t)
  const program = `${HEAD}
    const client = new Client(url, { responseTimeoutMs: 300 })
    const held = await client.lock(name).acquire()
    say('held')
    await heard()
    await client.close()
    while (more()) await sleep(5)
    say(held.isValid())`
  const script = start(t, program, server, t.name)
  assert.deepEqual([await script.line(), await script.line()], ['begins', 'held'])
  server.pause()
  script.tell()
  assert.deepEqual(await script.ending(), ['false'])
})

test('a client that is garbage keeps none', LINUX, async (t) => {
  const program = `${HEAD}
    await (async () => { for (let at = 0; at < 20; at += 1) await new Client(url).withLock(name, () => undefined) })()
    while (more()) {
      gc()
      await sleep(5)
    }`
  assert.deepEqual(await run(t, program, await sharedServer(), t.name, { flags: ['--expose-gc'] }), ['begins'])
})
