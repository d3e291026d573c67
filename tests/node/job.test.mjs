// A job in Node: its signal, what its work may return and throw, and an attempt as a hold. The contract has the rest.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { inspect } from 'node:util'
import { runInNewContext } from 'node:vm'

import { Attempt, Client, Hold, InvalidArgumentError, Job, LockLostError, configure, job as jobOfDefault } from 'locktender'

import { PATIENCE_MS, until } from './support/observe.mjs'
import { sharedServer } from './support/server.mjs'

const server = await sharedServer()
// An attempt that isn't repeated may meet a stalled machine.
const patient = { responseTimeoutMs: PATIENCE_MS }
const client = new Client(server.url, patient)
const rival = new Client(server.url, patient)
after(() => Promise.all([client.close(), rival.close()]))

/** What the job's record says, as far as these tests look. */
async function record(job) {
  const { state, attempts, lastError, result } = await job.status()
  return [state, attempts, lastError, result]
}

/** A promise that rejects with the signal's reason, as `fetch` does. */
const untilAborted = (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

test('work that an abort ends gives its attempt back, and the next attempt has the same number', async (t) => {
  const job = client.job(t.name, { maxAttempts: 1 })
  const [stop, reason] = [new AbortController(), new Error('the process is told to end')]
  const work = async (attempt) => {
    setImmediate(() => stop.abort(reason))
    await untilAborted(AbortSignal.any([attempt.signal, stop.signal]))
  }
  await assert.rejects(job.run(work, { signal: stop.signal }), (error) => error === reason)
  assert.deepEqual(await record(job), ['new', 0, null, null])
  assert.equal((await job.run(({ number }) => number)).result, 1)
})

test('an abort at the moment of the begin comes before the work', async (t) => {
  const own = new Client(`memory://${t.name}`)
  t.after(() => own.close())
  const stop = new AbortController()
  own.on('acquired', () => stop.abort())
  await assert.rejects(own.job(t.name).run(() => assert.fail('ran'), { signal: stop.signal }), { name: 'AbortError' })
  await until(async () => (await own.job(t.name).status()).state === 'new')
})

test('whatever work throws after an abort, the reason comes back', async (t) => {
  const job = client.job(t.name)
  const stop = new AbortController()
  const work = () => {
    stop.abort('enough')
    throw new Error('half done')
  }
  await assert.rejects(job.run(work, { signal: stop.signal }), (error) => error === 'enough')
  assert.deepEqual(await record(job), ['new', 0, null, null])
})

test('work holds its lock until it ends, also after an abort, and is done if it returns', async (t) => {
  const job = client.job(t.name)
  const stop = new AbortController()
  const outcome = await job.run(async (attempt) => {
    stop.abort()
    assert.equal((await rival.lock(t.name).inspect()).owner, attempt.owner)
    attempt.check()
    return 'sent'
  }, { signal: stop.signal })
  assert.deepEqual(outcome, { ran: true, reason: null, result: 'sent', attempts: 1, lastError: null })
  assert.deepEqual(await record(job), ['done', 1, null, 'sent'])
})

test('an abort ends the wait of a backup, which leaves nothing', async (t) => {
  const attempt = await rival.job(t.name).begin()
  const stop = new AbortController()
  const waiting = client.job(t.name).run(() => assert.fail('ran'), { signal: stop.signal })
  await until(async () => (await server.line(t.name)).length)
  stop.abort()
  await assert.rejects(waiting, { name: 'AbortError' })
  await attempt.complete()
  assert.deepEqual(await record(client.job(t.name)), ['done', 1, null, null])
})

const thrown = {
  'an error': [new TypeError('no such address'), 'no such address'],
  'an error without a message': [new RangeError(), 'RangeError'],
  'an error of another realm': [runInNewContext('new Error("from afar")'), 'from afar'],
  'an error whose message is no text': [Object.assign(new Error(), { message: 5 }), /^Error: 5/],
  'a text': ['out of paper', 'out of paper'],
  'a text with a lone surrogate': ['out \ud800', 'out \ufffd'],
  'a number': [42, '42'],
  'undefined': [undefined, 'undefined'],
  'a symbol': [Symbol('gone'), 'Symbol(gone)'],
  'an object': [{ code: 550 }, '{ code: 550 }'],
  'an object whose code throws': [new Proxy({}, { getPrototypeOf: () => assert.fail('asked') }), 'object'],
}
for (const [what, [error, said]] of Object.entries(thrown)) {
  test(`work that throws ${what} failed with it, and it comes back unchanged`, async (t) => {
    const job = client.job(t.name)
    const ran = job.run(() => { throw error })
    assert.ok(Object.is(await ran.then(assert.fail, (caught) => caught), error))
    const [state, attempts, lastError] = await record(job)
    assert.deepEqual([state, attempts], ['retrying', 1])
    assert.match(lastError, said instanceof RegExp ? said : new RegExp(`^${said.replace(/[()]/g, '\\$&')}$`))
  })
}

test('work may fail its attempt itself, with a delay of its own', async (t) => {
  const job = client.job(t.name)
  const refused = new Error('too many requests')
  const work = async (attempt) => {
    await attempt.fail(refused, { retryInMs: 600_000 })
    throw refused
  }
  await assert.rejects(job.run(work), (error) => error === refused)
  const { retryInMs, lastError } = await job.status()
  assert.ok(retryInMs > 500_000, `${retryInMs} ms`)
  assert.equal(lastError, 'too many requests')
})

const circular = {}
circular.self = circular
const inexpressible = {
  'a function': () => 0,
  'a symbol': Symbol('it'),
  'a BigInt': 7n,
  'a circle': circular,
  'no number': NaN,
  'endless, inside': [1, { of: -Infinity }],
  'a function, inside': { sent: () => 3 },
  'a symbol, inside': [Symbol('it')],
  'a Map': new Map([[1, 2]]),
  'a Set, inside': { sent: new Set([1]) },
  'a WeakMap': new WeakMap(),
  'a RegExp': /it/,
  'an Error': new Error('it'),
  'a promise, inside': { sent: Promise.resolve() },
  'bytes': new Uint8Array(3),
  'a buffer': new ArrayBuffer(3),
  'an invalid Date': { at: new Date(NaN) },
  'a text with a lone surrogate': ['\ud800'],
  'a key with a lone surrogate': { '\ud800': 1 },
  'what throws while it is read': { toJSON() { throw new Error('unreadable') } },
  'what is too long': 'x'.repeat(65_536),
}
for (const [what, value] of Object.entries(inexpressible)) {
  test(`a result that is ${what} is refused, and fails the attempt`, async (t) => {
    const job = client.job(t.name)
    await assert.rejects(job.run(() => value), (error) => {
      assert.ok(error instanceof InvalidArgumentError, String(error))
      assert.match(error.message, /^result: /)
      return true
    })
    const [state, attempts, lastError] = await record(job)
    assert.deepEqual([state, attempts], ['retrying', 1])
    assert.match(lastError, /^result: /)
    const attempt = await job.begin()
    await assert.rejects(attempt.complete(value), InvalidArgumentError)
    attempt.check()
    await attempt.complete('another')
    assert.equal((await job.status()).result, 'another')
  })
}

test('a result comes back as JSON gives it', async (t) => {
  const results = [[undefined, null], [null, null], [0, 0], ['', ''], [false, false], [[1, undefined], [1, null]], [{ a: undefined, b: Object.create(null) }, { b: {} }], [new Date(0), '1970-01-01T00:00:00.000Z']]
  for (const [at, [value, expected]] of results.entries()) {
    const job = client.job(`${t.name} ${at}`)
    assert.deepEqual(await job.run(async () => value), { ran: true, reason: null, result: expected, attempts: 1, lastError: null })
    assert.deepEqual((await job.run(() => assert.fail('ran'))).result, expected)
    assert.deepEqual((await job.status()).result, expected)
  }
})

test('a result that another program wrote, and that is no JSON, is given as it is', async (t) => {
  const job = client.job(t.name)
  await job.run(() => 1)
  await server.command('HSET', `{${t.name}}:~lt:job`, 'result', 'sent {3}')
  assert.equal((await job.status()).result, 'sent {3}')
  assert.equal((await job.run(() => assert.fail('ran'))).result, 'sent {3}')
})

test('an attempt is a hold, and leaving its block gives it back', async (t) => {
  const job = client.job(t.name, { maxAttempts: 1 })
  assert.ok(job instanceof Job)
  const attempt = await job.begin()
  assert.ok(attempt instanceof Attempt && attempt instanceof Hold)
  assert.match(inspect(attempt), /^Attempt \{\s+name: .*\sfence: \d+,\s+remainingMs: /s)
  assert.deepEqual(await record(job), ['running', 1, null, null])
  await attempt[Symbol.asyncDispose]()
  assert.deepEqual(await record(job), ['new', 0, null, null])
  const ended = await job.begin()
  await ended.complete('sent')
  await ended[Symbol.asyncDispose]()
  assert.deepEqual(await record(job), ['done', 1, null, 'sent'])
})

test('a blocked event loop does not lose the attempt', async (t) => {
  const job = client.job(t.name, { ttlMs: 2_000 })
  const { result } = await job.run((attempt) => {
    for (const end = performance.now() + 3_000; performance.now() < end;);
    return attempt.isValid()
  })
  assert.equal(result, true)
})

test('work whose lease is lost is told by its signal, and done if nobody has begun since', async (t) => {
  const job = client.job(t.name, { ttlMs: 200, renew: false })
  const outcome = await job.run(async (attempt) => {
    await attempt.lost
    assert.ok(attempt.signal.reason instanceof LockLostError)
    return 'late'
  })
  assert.deepEqual(outcome, { ran: true, reason: null, result: 'late', attempts: 1, lastError: null })
})

test('work whose lease is lost is refused if another has begun since, and its result is with the error', async (t) => {
  const work = async (attempt) => {
    await attempt.lost
    return { theirs: await rival.job(t.name).begin(), toJSON: () => 'late' }
  }
  const error = await client.job(t.name, { ttlMs: 200, renew: false }).run(work).then(assert.fail, (refused) => refused)
  assert.ok(error instanceof LockLostError, String(error))
  const { theirs } = error.result
  assert.deepEqual([error.nextOwner, theirs.number], [theirs.owner, 2])
  await theirs.complete()
})

test('the end of a job is an event with its attempt, heard or not', async (t) => {
  const own = new Client(server.url, patient)
  t.after(() => own.close())
  const told = []
  for (const kind of ['retry', 'dead', 'done']) own.on(kind, (event) => told.push([kind, event.lockName, event.attempt, event.message]))
  const job = own.job(t.name, { maxAttempts: 2 })
  const fail = () => job.run(() => { throw new Error('no') }).catch(() => undefined)
  await fail()
  await fail()
  await job.reset()
  await job.run(() => 1)
  await until(() => told.length === 3)
  assert.deepEqual(told.map((event) => event.slice(0, 3)), [['retry', t.name, 1], ['dead', t.name, 2], ['done', t.name, 1]])
  assert.ok(told.slice(0, 2).every(([, , , message]) => message.includes('no')))
})

test('a job of the default client has its options, and makes no client before it is used', async (t) => {
  configure(`memory://${t.name}`, { prefix: 'p:' })
  const job = jobOfDefault('mail:7', { maxAttempts: 1 })
  assert.equal(job.name, 'mail:7')
  await assert.rejects(job.run(() => { throw new Error('no') }), /^Error: no$/)
  assert.equal((await new Client(`memory://${t.name}`, { prefix: 'p:' }).job('mail:7').status()).state, 'dead')
  const wrong = jobOfDefault('mail:7', { retentionMs: 1 })
  await assert.rejects(wrong.begin(), { code: 'INVALID_ARGUMENT', message: /^retentionMs: / })
  await assert.rejects(wrong.status(), InvalidArgumentError)
})

const mistakes = {
  'no number of attempts': [{ maxAttempts: '5' }, /^maxAttempts: must be a whole number/],
  'half an attempt': [{ maxAttempts: 2.5 }, /^maxAttempts: must be a whole number/],
  'fewer attempts than none': [{ maxAttempts: -1 }, /^maxAttempts: must be a whole number/],
  'more attempts than there may be': [{ maxAttempts: 2 ** 32 + 1 }, /^maxAttempts: must be from 1 to 10000/],
  'a delay that is no number': [{ retryDelayMs: '1 s' }, /^retryDelayMs: must be a number of milliseconds/],
  'an endless delay': [{ retryDelayMs: Infinity }, /^retryDelayMs: .* from 0 ms to 3600000 ms/],
  'another library\'s word': [{ retries: 5 }, /^retries: here it is maxAttempts/],
  'a typing error': [{ maxAttempt: 5 }, /^maxAttempt: .*did you mean maxAttempts\?/],
  'a signal': [{ signal: AbortSignal.timeout(1) }, /^signal: .*job\.run\(work, \{ signal \}\)/],
}
for (const [what, [options, said]] of Object.entries(mistakes)) {
  test(`the options of a job refuse ${what}`, () => {
    assert.throws(() => client.job('mail', options), (error) => error instanceof InvalidArgumentError && said.test(error.message))
  })
}

test('a cron job runs once per scheduled time; once is that of an event emitter, with a listener', async (t) => {
  const own = new Client(`memory://${t.name}`)
  t.after(() => own.close())
  const heard = []
  assert.equal(own.once('acquired', ({ kind }) => heard.push(kind)), own)
  const next = once(own, 'done')
  const at = new Date()
  const outcome = await own.cronJob('nightly', { at }).run(() => 1)
  assert.deepEqual(outcome, { ran: true, reason: null, result: 1, attempts: 1, lastError: null })
  assert.equal((await own.cronJob('nightly', { at: at.getTime() }).run(() => 2)).reason, 'done')
  assert.deepEqual((await own.job('nightly').status()).scheduledTime, at)
  assert.deepEqual([heard, (await next)[0].kind], [['acquired'], 'done'])
  assert.equal(own.listenerCount('acquired'), 0)
  assert.throws(() => own.once('nightly', { at }), { code: 'INVALID_ARGUMENT', message: /^listener: must be a function; .*cronJob\(name, options\)/ })
})

for (const [what, options, said] of [
  ['no time', { at: '02:00' }, /at: must be a Date/],
  ['an invalid date', { at: new Date('02:00') }, /at: must be a Date/],
  ['seconds', { at: 1_795_600_000 }, /at: must be a time from the year 2000 to 9999; as a number it counts the milliseconds since 1970/],
  ['no way to overlap', { onOverlap: 'queue' }, /onOverlap: must be "skip" or "wait"/],
  ['a crontab', { cron: '0 2 * * *' }, /cron: locktender runs no schedule: call this from your scheduler, and give at/],
  ['what a schedule has not', { retentionMs: 1_000 }, /retentionMs: leave it out/],
]) {
  test(`the options of a schedule refuse ${what}`, () => {
    assert.throws(() => client.cronJob('nightly', options), (error) => error instanceof InvalidArgumentError && said.test(error.message))
  })
}

test('an option of the job that is given to a call is sent there', async (t) => {
  const job = client.job(t.name)
  const refused = (message) => ({ code: 'INVALID_ARGUMENT', message })
  await assert.rejects(job.begin({ maxAttempts: 5 }), refused(/^maxAttempts: .*give it to job\(\)/))
  await assert.rejects(job.run(() => assert.fail('ran'), { ttlMs: 5 }), refused(/^ttlMs: .*give it to job\(\)/))
  await assert.rejects(job.run({}, () => assert.fail('ran')), refused(/^work: must be a function/))
  const attempt = await job.begin()
  await assert.rejects(attempt.fail('no', { retryIn: 5 }), refused(/^retryIn: .*did you mean retryInMs\?/))
  await assert.rejects(attempt.fail('no', { retryInMs: 3_600_001 }), refused(/^retryInMs: /))
  attempt.check()
  await attempt.release()
})
