// A scene: one case while it is played.

import { once } from 'node:events'
import os from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

import { Client, LockError, safeName } from 'locktender'

import { certificate } from '../support/checkout.mjs'
import { mismatch, spelled, Variables } from './matching.mjs'
import { repliesOf, replyOf } from './place.mjs'
import { describe, ended, look, observed, outcomeOf, show, showGrant, showHold, statusOf } from './seen.mjs'

/** How long something that is certain to happen may take. */
const PATIENCE_MS = 20_000

/** The steps that open a client, if there is none yet. */
const USES_A_CLIENT = new Set([
  'open', 'acquire', 'try_acquire', 'body', 'adopt', 'inspect', 'locks', 'history', 'holds', 'force_release', 'wait_free', 'events', 'close', 'begin', 'run', 'status', 'reset', 'campaign', 'try_campaign', 'lead', 'observe',
  'metrics',
])

// What JSON can't express.
const ODD = { not_a_number: NaN, endless: [-Infinity], set: { sent: new Set([1, 2]) }, function: { sent: () => 1 }, surrogate: '\ud800' }

/** What a body throws that is told to. */
class BodyError extends Error {}

/** Options as Node spells them: `ttlMs` for `ttl_ms`, and Infinity for ever. */
function options({ name: _, names: ___, read: __, ...wanted }) {
  const entries = Object.entries(wanted)
  return Object.fromEntries(entries.map(([key, value]) => [spelled(key), value === 'forever' ? Infinity : value]))
}

/** The promise's result, if it comes in time. */
async function within(promise, what) {
  const patience = new AbortController()
  const late = sleep(PATIENCE_MS, undefined, { signal: patience.signal }).then(() => {
    throw new Error(`${what} after ${PATIENCE_MS} ms`)
  })
  late.catch(() => {}) // aborted
  return Promise.race([promise, late]).finally(() => patience.abort())
}

async function eventually(what, isSo) {
  const deadline = performance.now() + PATIENCE_MS
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`${what()} after ${PATIENCE_MS} ms`)
    await sleep(5)
  }
}

export class Scene {
  #case
  #place
  #variables = new Variables()
  #clients = new Map()
  #holds = new Map()
  #later = new Map()
  #cancels = new Map()
  #start = Date.now()
  #observers = new Map()

  constructor(played, place, name) {
    this.#case = played
    this.#place = place
    const known = { name, ca: certificate('ca.pem'), pid: String(process.pid), host: os.hostname() }
    for (const [key, value] of Object.entries(known)) this.#variables.set(key, value)
  }

  /** Plays every step; the first that sees something else than it expects ends the case. */
  async play() {
    try {
      await this.#steps(this.#case.steps)
    } finally {
      for (const { client } of this.#clients.values()) await client.close()
    }
  }

  async #steps(steps) {
    for (const [index, step] of steps.entries()) {
      const began = performance.now()
      const seen = await this.#act(step)
      seen.took_ms = performance.now() - began
      const expected = this.#variables.fill(step.expect ?? {})
      const surprise = ['error', 'busy'].find((key) => seen[key] && !(key in expected))
      const why = surprise ? `${surprise} was not expected` : mismatch(expected, seen)
      if (why) throw new Error(`step ${index} (${step.do}): ${why}\n    seen: ${JSON.stringify(seen)}`)
    }
  }

  async #act(step) {
    try {
      if (USES_A_CLIENT.has(step.do)) await this.#acquainted(step)
      return (await this.#verbs[step.do]({ ...this.#variables.fill(step), steps: step.steps, terms: step.terms })) ?? {}
    } catch (error) {
      if (error instanceof LockError) return describe(error)
      throw error
    }
  }

  #client({ client: name = 'client' }) {
    if (!this.#clients.has(name)) {
      const wanted = { ...this.#place.patience, ...options(this.#variables.fill(this.#case.clients?.[name] ?? {})) }
      const client = new Client(this.#place.urls.length ? this.#place.urls : undefined, wanted)
      const kinds = []
      client.on('event', ({ kind }) => kinds.push(kind))
      this.#clients.set(name, { client, kinds })
    }
    return this.#clients.get(name).client
  }

  /** On several servers no attempt shall have to make three connections within the time that an answer may take. */
  async #acquainted(step) {
    const isNew = !this.#clients.has(step.client ?? 'client')
    const client = this.#client(step)
    if (isNew && this.#place.name === 'quorum') await client.checkServers()
  }

  #recipe(wanted = {}) {
    return [wanted.names ?? ('name' in wanted ? wanted.name : this.#variables.fill('$name')), options(wanted)]
  }

  /** The call of a client for a kind of lock: of four, the one that a step's lock means. */
  #kindOf({ lock = {} }, [plain, semaphore, reader, several]) {
    if (lock.names) return several
    if (lock.read) return reader
    return 'permits' in lock ? semaphore : plain
  }

  #lock(step) {
    const make = this.#kindOf(step, ['lock', 'semaphore', 'readLock', 'multiLock'])
    return this.#client(step)[make](...this.#recipe(step.lock))
  }

  #job(step) {
    if (!step.cron_job) return this.#client(step).job(...this.#recipe(step.job))
    const [name, { atMs, atEpochMs, ...options }] = this.#recipe(step.cron_job)
    const at = atMs === undefined ? atEpochMs : new Date(this.#start + atMs)
    return this.#client(step).cronJob(name, { ...options, ...(at === undefined ? {} : { at }) })
  }

  #election(step) {
    return this.#client(step).election(...this.#recipe(step.election))
  }

  /** Keeps the hold; a job that is done has none. */
  #keep({ as = 'held' }, held) {
    if (!held) return { done: true }
    this.#holds.set(as, held)
    this.#variables.set(`${as}.owner`, held.owner)
    this.#variables.set(`${as}.fence`, held.fence)
    return look(held)
  }

  #held({ on = 'held' }) {
    return this.#holds.get(on)
  }

  /** Keeps what was acquired, or begun, unless a later step joins it. */
  async #get(step, got) {
    if (!step.later) return this.#keep(step, await got)
    got.catch(() => {}) // told by join
    this.#later.set(step.later, got)
  }

  #verbs = {
    open: async (step) => void this.#client(step),

    acquire: async (step) => {
      const controller = new AbortController()
      if (step.later) this.#cancels.set(step.later, controller)
      return await this.#get(step, this.#lock(step).acquire({ signal: controller.signal }))
    },

    cancel: async (step) => {
      this.#cancels.get(step.of).abort()
      await this.#later.get(step.of).catch(() => {})
    },

    join: async (step) => this.#keep(step, await within(this.#later.get(step.of), 'the acquire goes on')),

    try_acquire: async (step) => {
      const held = await this.#lock(step).tryAcquire()
      return held ? this.#keep(step, held) : { busy: true }
    },

    adopt: async (step) => {
      const options = 'or_acquire' in step ? [{ orAcquire: step.or_acquire }] : []
      return this.#keep(step, await this.#client(step).adopt(step.ticket, ...options))
    },

    body: async (step) => {
      const body = async (held) => {
        this.#keep(step, held)
        await this.#steps(step.steps)
        if (step.raises) throw new BodyError()
        return step.returns ?? null
      }
      try {
        const around = this.#kindOf(step, ['withLock', 'withSemaphore', 'withReadLock', 'withMultiLock'])
        return { result: await this.#client(step)[around](...this.#recipe(step.lock), body) }
      } catch (error) {
        if (error instanceof BodyError) return { error: 'BODY', lock_error: error.lockError?.code ?? null }
        throw error
      }
    },

    begin: async (step) => await this.#get(step, this.#job(step).begin()),

    campaign: async (step) => await this.#get(step, this.#election(step).campaign()),

    try_campaign: async (step) => {
      const leadership = await this.#election(step).tryCampaign()
      return leadership ? this.#keep(step, leadership) : { busy: true }
    },

    lead: async (step) => {
      const [stop, terms] = [new AbortController(), [...step.terms]]
      const work = async (leadership) => {
        const term = terms.shift()
        this.#keep(term, leadership)
        await this.#steps(term.steps)
        if (terms.length === 0 && !term.raises) stop.abort()
        if (term.checks) leadership.check()
        if (term.raises) throw new BodyError(term.raises)
      }
      try {
        return await this.#election(step).lead(work, { signal: stop.signal })
      } catch (error) {
        if (error === stop.signal.reason) return { stopped: true }
        if (error instanceof BodyError) return { error: 'BODY', message: error.message }
        throw error
      }
    },

    observe: async (step) => {
      if (!step.of) this.#observers.set(step.as, this.#election(step).observe())
      const { value } = await this.#observers.get(step.of ?? step.as).next()
      return observed(value)
    },

    resign: async (step) => ended(await this.#held(step).resign()),

    run: async (step) => {
      const work = async (attempt) => {
        this.#keep(step, attempt)
        await this.#steps(step.steps)
        if (step.checks) attempt.check()
        if (step.raises) throw new BodyError(step.raises)
        return step.odd ? ODD[step.odd] : step.returns
      }
      try {
        return outcomeOf(await this.#job(step).run(work))
      } catch (error) {
        if (error instanceof BodyError) return { error: 'BODY', message: error.message }
        throw error
      }
    },

    complete: async (step) => void (await this.#held(step).complete(step.result)),

    fail: async (step) => {
      const { retry, retry_in_ms: retryInMs } = step
      const options = 'retry' in step || 'retry_in_ms' in step ? [{ retry, retryInMs }] : []
      await this.#held(step).fail(step.message, ...options)
    },


    status: async (step) => statusOf(await this.#job(step).status(), this.#start),

    reset: async (step) => ({ reset: await this.#job(step).reset() }),

    extend: async (step) => {
      const held = this.#held(step)
      await ('ttl_ms' in step ? held.extend({ ttlMs: step.ttl_ms }) : held.extend())
      return look(held)
    },

    extend_by: async (step) => {
      const held = this.#held(step)
      await held.extend({ byMs: step.by_ms })
      return look(held)
    },

    release: async (step) => ended(await this.#held(step).release()),

    look: async (step) => look(this.#held(step)),

    hand_over: async (step) => {
      const ticket = await this.#held(step).handOver()
      this.#variables.set(step.as, ticket)
      return { ticket }
    },

    downgrade: async (step) => this.#keep(step, await this.#held(step).downgrade()),

    inspect: async (step) => show(await this.#lock(step).inspect()),

    locks: async (step) => {
      const locks = await this.#client(step).locks(step.pattern, { limit: step.limit })
      return { count: locks.length, locks: locks.map(show) }
    },

    holds: async (step) => ({ holds: this.#client(step).holds().map(showHold) }),

    force_release: async (step) => show(await this.#lock(step).forceRelease({ owner: step.owner })),

    wait_lost: async (step) => {
      const held = this.#held(step)
      const { signal } = held
      if (!signal.aborted) await within(once(signal, 'abort'), 'the lock is not lost')
      // A look at the signal asks the clock, and may be earlier than the core, which counts the loss.
      await within(held.lost, 'the core does not know that the lock is lost')
      const { reason, nextOwner, nextFence } = signal.reason
      return { reason, next_owner: nextOwner, next_fence: nextFence }
    },

    // A majority has released a lock, and let it expire, before the last server of a quorum.
    history: async (step) => {
      let grants
      const asked = async () => {
        grants = await this.#client(step).history(step.name, { limit: step.limit })
        return !step.until || grants[0]?.state === step.until
      }
      await eventually(() => `the history is ${JSON.stringify(grants)}`, asked)
      return { count: grants.length, grants: grants.map(showGrant) }
    },

    wait_free: async (step) => {
      const lock = this.#lock(step)
      const left = () => repliesOf(this.#place, 'EXISTS', lock.name)
      await eventually(() => 'the lock is not free', async () => !(await lock.inspect()) && !(await left()).includes(1))
    },

    events: async (step) => {
      this.#client(step)
      const { kinds } = this.#clients.get(step.client ?? 'client')
      const inOrder = () => kinds.reduce((rest, kind) => (rest[0] === kind ? rest.slice(1) : rest), step.kinds).length === 0
      await eventually(() => `the events were ${kinds}`, inOrder)
    },

    metrics: async (step) => {
      const metrics = this.#client(step).metrics()
      const value = (key) => {
        const [name, ...labels] = key.split(' ')
        return metrics.value(`locktender_${name}`, { ...step.labels, ...Object.fromEntries(labels.map((label) => label.split('='))) })
      }
      return Object.fromEntries(Object.keys(step.expect).map((key) => [key, value(key)]))
    },

    safe_name: async ({ text }) => ({ name: safeName(text) }),

    close: async (step) => void (await this.#client(step).close()),

    script: async ({ lines }) => {
      this.#place.scripted.play(lines.join('\n'))
    },
    server: async ({ command, until }) => {
      const deadline = performance.now() + PATIENCE_MS
      for (;;) {
        const reply = await replyOf(this.#place, ...command)
        const awaited = until !== undefined && mismatch(until, reply)
        if (!awaited || performance.now() > deadline) return { reply }
        await sleep(5)
      }
    },

    pass_ms: async ({ ms }) => void (await sleep(ms)),
  }
}
