// Credentials that a function gives: at once or by a promise, with and without an end, and what its failures become.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'

import { Client, DeniedError, InvalidArgumentError, UnavailableError } from 'locktender'

import { PATIENCE_MS, until } from './support/observe.mjs'
import { root } from './support/checkout.mjs'
import { run } from './support/script.mjs'
import { startServer } from './support/server.mjs'

const TTL_MS = 4_500
const ADMIN = 'the-administrators'

/** A server that asks everybody for a password. */
const guarded = (t, options = {}) => startServer(t, { password: ADMIN, ...options })

function clientOf(t, server, credentials, options = {}) {
  const client = new Client(`redis://127.0.0.1:${server.port}`, { credentials, connectTimeoutMs: PATIENCE_MS, ...options })
  t.after(() => client.close())
  return client
}

/** The number of the token of each connection of this library, by its id. */
async function connectionsTo(server) {
  const lines = (await server.command('CLIENT', 'LIST')).trim().split('\n')
  const connections = lines.map((line) => Object.fromEntries(line.split(' ').map((field) => field.split('='))))
  return new Map(connections.filter(({ name }) => name.startsWith('locktender')).map(({ id, user }) => [id, Number(user.replace('token-', ''))]))
}

test('a hold outlives three tokens on the same connections', async (t) => {
  const server = await guarded(t)
  let tokens = 0
  const client = clientOf(t, server, async (address) => {
    assert.equal(address, `redis://127.0.0.1:${server.port}`)
    const [user, password] = [`token-${(tokens += 1)}`, `hunter2-of-${tokens}`]
    await server.command('ACL', 'SETUSER', user, 'on', `>${password}`, '~*', '&*', '+@all')
    return { user, password, expiresInMs: 3_000 }
  })
  const bad = []
  for (const kind of ['lost', 'warning', 'server_failed']) client.on(kind, (event) => bad.push(event))
  const held = await client.lock(t.name, { ttlMs: TTL_MS }).acquire()
  await until(async () => (await connectionsTo(server)).size >= 2, PATIENCE_MS)
  const before = [...(await connectionsTo(server)).keys()]
  for (let number = 2; number < 5; number += 1) {
    await until(async () => Math.min(...(await connectionsTo(server)).values()) >= number, PATIENCE_MS)
    await server.command('ACL', 'DELUSER', `token-${number - 1}`)
  }
  assert.deepEqual([...(await connectionsTo(server)).keys()], before)
  assert.ok(held.isValid())
  await held.release()
  assert.deepEqual(bad, [])
})

test('what a provider gives is shown in no error, whatever it is', async (t) => {
  const server = await guarded(t)
  for (const given of [Buffer.from('hunter2'), ['hunter2'], { password: 'x', pin: 112 }]) {
    const error = await clientOf(t, server, () => given, { unavailableAfterMs: 300 }).lock(t.name).acquire().catch((error) => error)
    assert.equal(error.code, 'DENIED')
    // The port may have any digits.
    const shown = `${error.message} ${error.cause?.message}`.replace(/127\.0\.0\.1:\d+/, '')
    assert.doesNotMatch(shown, /hunter2|112|104/)
  }
})

for (const [form, credentials] of Object.entries({
  'a password': () => ADMIN,
  'a promise of a password': async () => ADMIN,
  'a user and a password': () => ({ user: 'ann', password: 'hunter2' }),
  'all of them': async () => ({ user: 'ann', password: 'hunter2', expiresInMs: 60_000 }),
})) {
  test(`the function may give ${form}`, async (t) => {
    const server = await guarded(t, { users: { ann: ['hunter2', '~* &* +@all'] } })
    const held = await clientOf(t, server, credentials).lock(t.name).acquire()
    await held.release()
  })
}

test('what it throws is the cause, and the next call counts', async (t) => {
  const server = await guarded(t)
  const [thrown, rejected] = [new RangeError('no token today'), { odd: true }]
  const answers = [() => { throw thrown }, async () => { throw rejected }, () => ADMIN]
  const client = clientOf(t, server, () => answers.shift()())
  const error = await client.lock(t.name).acquire().catch((error) => error)
  assert.ok(error instanceof DeniedError)
  assert.equal(error.cause, thrown)
  assert.match(error.message, /`credentials` failed: RangeError: no token today/)
  assert.equal(error.servers[0].kind, 'denied')
  let last
  await until(async () => (last = await client.lock(t.name).tryAcquire().catch((error) => error)) && last.cause !== thrown, PATIENCE_MS)
  assert.equal(last.cause, rejected)
  await until(async () => {
    const held = await client.lock(t.name).tryAcquire().catch(() => null)
    return held && (await held.release())
  }, PATIENCE_MS)
})

for (const wrong of [undefined, null, 7, ['ann', 'hunter2'], {}, { password: 7 }, { user: ['hunter2'], password: 'x' }, { password: 'hunter2', expiresIn: 7 }, { password: 'hunter2', expiresInMs: -1 }]) {
  test(`${JSON.stringify(wrong)} is refused without showing it`, async (t) => {
    const server = await guarded(t)
    const error = await clientOf(t, server, () => wrong).lock('a').acquire().catch((error) => error)
    assert.ok(error instanceof DeniedError && error.cause instanceof InvalidArgumentError, error)
    assert.doesNotMatch(`${error.message} ${error.cause.message}`, /hunter2/)
  })
}

test('a wrong password is asked for once more, and shown nowhere', async (t) => {
  const server = await guarded(t)
  let calls = 0
  const client = clientOf(t, server, () => ({ user: 'ann', password: `hunter2hunter2${(calls += 1)}` }))
  const seen = []
  client.on('event', (event) => seen.push(event))
  const error = await client.lock(t.name).acquire().catch((error) => error)
  assert.ok(error instanceof DeniedError)
  assert.equal(calls, 2)
  assert.equal(error.cause, undefined)
  assert.doesNotMatch(`${error.message} ${JSON.stringify([error.servers, seen])}`, /hunter2/)
})

test('a promise that never settles ends with the connect timeout, and with the client', async (t) => {
  const server = await guarded(t)
  const never = () => new Promise(() => {})
  const client = clientOf(t, server, never, { connectTimeoutMs: 100, unavailableAfterMs: 300 })
  const error = await client.lock(t.name).acquire().catch((error) => error)
  assert.ok(error instanceof UnavailableError)
  assert.match(error.message, /`credentials` gave no answer within 100 ms/)
})

test('a blocked event loop delays no renewal', async (t) => {
  const server = await guarded(t)
  const client = clientOf(t, server, () => ({ password: ADMIN, expiresInMs: 1_000 }))
  const held = await client.lock(t.name, { ttlMs: 2_000 }).acquire()
  // Longer than the ttl and the life of the credentials.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4_000)
  assert.ok(held.isValid())
  await held.release()
})

test('wrong options are refused without showing them', () => {
  for (const credentials of ['hunter2', { password: 'hunter2' }, 7]) {
    assert.throws(() => new Client('redis://localhost', { credentials }), (error) => error instanceof InvalidArgumentError && !/hunter2/.test(error.message))
  }
  assert.throws(() => new Client('redis://ann:hunter2@localhost', { credentials: () => 'x' }), /the option credentials/)
})

test('a client that only waits for its next credentials keeps no process alive', async (t) => {
  const server = await guarded(t)
  const program = `
    const client = new Client('redis://127.0.0.1:${server.port}', { credentials: () => ({ password: '${ADMIN}', expiresInMs: 1_000 }) })
    await (await client.lock('a').acquire()).release()
    say('released')
  `
  assert.deepEqual(await run(t, program, server, t.name), ['released'])
})

test('the recipe of a file runs as it stands in the page', async (t) => {
  const server = await guarded(t)
  const directory = mkdtempSync(path.join(tmpdir(), 'locktender-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const file = path.join(directory, 'password')
  writeFileSync(file, `${ADMIN}\n`)
  const page = readFileSync(path.join(root, 'docs/servers.md'), 'utf8')
  const [, recipe] = page.match(/<!-- recipe: file-node -->\n```js\n(.*?)^```$/ms)
  const placed = recipe.replace('/run/secrets/redis', file).replace('db.example', `127.0.0.1:${server.port}`)
  const program = placed.replace(/^import \{ Client \}.*$/m, '') + "\nawait (await client.lock('a').acquire()).release()\nsay('released')"
  assert.deepEqual(await run(t, program, server, t.name), ['released'])
})
