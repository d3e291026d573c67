// Words and orders of other libraries: each is answered with ours.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { inspect } from 'node:util'

import { Client, tryWithLock, tryWithSemaphore, withLock, withReadLock } from 'locktender'

const migrating = readFileSync(new URL('../../docs/migrating.md', import.meta.url), 'utf8')

test('a method of another library says what there is here instead', async (t) => {
  const client = new Client(`memory://${t.name}`)
  const lock = client.lock('orders')
  const held = await lock.acquire()
  for (const [subject, word, ours] of [
    [client, 'using', 'client.withLock(name, options, body)'],
    [client, 'quit', 'close()'],
    [client, 'ping', 'checkServers()'],
    [lock, 'locked', 'inspect()'],
    [lock, 'unlock', 'release() of the hold'],
    [held, 'unlock', 'release() of the hold'],
    [held, 'reacquire', 'extend() of the hold'],
    [held, 'extendBy', 'extend() of the hold, with byMs'],
  ]) {
    if (word !== 'extendBy') assert.ok(migrating.includes(word), word)   // ours, before 0.1.0
    assert.throws(() => subject[word](), (error) => error instanceof TypeError && error.message.includes(`no ${word}() here: `) && error.message.includes(ours))
    assert.ok(!Object.keys(subject).includes(word))
  }
  await held.release()
  await client.close()
})

test('the right order of name, options and body is said', async (t) => {
  const client = new Client(`memory://${t.name}`)
  const body = () => assert.fail('the body ran')
  const after = { code: 'INVALID_ARGUMENT', message: /^options: stand before the body: withLock\(name, \{ ttlMs: 10_000 \}, body\)/ }
  const number = { code: 'INVALID_ARGUMENT', message: /^options: must be an object between the name and the body: .* \(given: 10000\)$/ }
  const none = { code: 'INVALID_ARGUMENT', message: /^body: must be a function, the last argument/ }
  for (const around of [(...given) => client.withLock(...given), (...given) => client.tryWithLock(...given), withLock, tryWithLock]) {
    await assert.rejects(around('orders', body, { ttlMs: 10_000 }), after)
    await assert.rejects(around('orders', 10_000, body), number)
    await assert.rejects(around('orders', { ttlMs: 10_000 }), none)
  }
  assert.equal(await client.withLock('orders', undefined, () => 7), 7)
  for (const [around, order] of [
    [(...given) => client.withSemaphore(...given), 'withSemaphore(name, { permits: 5 }, body)'],
    [tryWithSemaphore, 'withSemaphore(name, { permits: 5 }, body)'],
    [(...given) => client.tryWithReadLock(...given), 'withReadLock(name, { ttlMs: 10_000 }, body)'],
    [withReadLock, 'withReadLock(name, { ttlMs: 10_000 }, body)'],
  ]) {
    for (const given of [[body, { permits: 5 }], [5, body]]) {
      await assert.rejects(around('orders', ...given), (error) => error.code === 'INVALID_ARGUMENT' && error.message.includes(order))
    }
    await assert.rejects(around('orders', { permits: 5 }), none)
  }
  await client.close()
})

test('a client shows its servers without passwords, and its prefix', async () => {
  const client = new Client(['redis://ann:hunter2@localhost:6400/3', 'redis://b'], { prefix: 'app:' })
  assert.equal(inspect(client), "Client { servers: [ 'redis://***@localhost:6400/3', 'redis://b' ], prefix: 'app:', closed: false }")
  await client.close()
  assert.match(inspect({ client }), /closed: true/)
})
