// A peer that uses locktender in Node; README.md lists its commands.

import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'

import { AcquireTimeoutError, Client, LockLostError } from 'locktender'

const client = new Client(process.argv[2], { app: 'peer node' })
let held = null
let kept = []

const shown = () => (held ? { owner: held.owner, fence: held.fence } : { owner: null })

const answers = {
  async try({ name, ttl_ms: ttlMs }) {
    held = await client.lock(name, { ttlMs }).tryAcquire()
    return shown()
  },
  async acquire({ name, wait_ms: waitMs }) {
    held = await client.lock(name, { waitMs }).acquire()
    return shown()
  },
  async adopt({ ticket }) {
    held = await client.adopt(ticket)
    return shown()
  },
  async release() {
    return { released: (await held.release()).outcome === 'released' }
  },
  async hand_over() {
    return { ticket: await held.handOver() }
  },
  async inspect({ name }) {
    const info = await client.lock(name).inspect()
    if (!info) return { owner: null }
    const { at, ...fields } = info.fields ?? {}
    return { owner: info.owner, fence: info.fence, fields: info.fields && { ...fields, at_ms: at.getTime() } }
  },
  async work({ names, file, max_attempts: maxAttempts, ms }) {
    let done = 0
    for (const name of names) {
      try {
        await client.job(name, { maxAttempts, ttlMs: 300, waitMs: 100 }).run(async (attempt) => {
          appendFileSync(file, `${name} ${attempt.number} ${attempt.fence}\n`)
          await setTimeout(ms)
          if (attempt.number === 1 && name.endsWith('7')) throw new RangeError('the first attempt fails')
          return attempt.fence
        })
        done += 1
      } catch (error) {
        if (![RangeError, AcquireTimeoutError, LockLostError].some((kind) => error instanceof kind)) throw error
      }
    }
    return { done }
  },
  async fire({ name, at_ms: at, file }) {
    const { reason } = await client.cronJob(name, { at }).run(async ({ fence }) => appendFileSync(file, `${at} ${fence}\n`))
    return { reason }
  },
  async lead({ name, ttl_ms: ttlMs, file }) {
    await client.election(name, { ttlMs }).lead(async (leadership) => {
      const { term, signal } = leadership
      for (;;) {
        const before = process.hrtime.bigint()
        leadership.check()
        const after = process.hrtime.bigint()
        appendFileSync(file, `${process.pid} ${term} ${before} ${after}\n`)
        await setTimeout(5, undefined, { signal })
      }
    })
  },
  async occupy({ name, as: role, ttl_ms: ttlMs, file }) {
    const work = async (hold) => {
      for (let n = 0; n < 3; n++) {
        const before = process.hrtime.bigint()
        hold.check()
        const after = process.hrtime.bigint()
        appendFileSync(file, `${process.pid} ${role} ${hold.fences?.get(name) ?? hold.fence} ${before} ${after}\n`)
        await setTimeout(3)
      }
    }
    for (;;) {
      try {
        if (role === 'writer') await client.withLock(name, { ttlMs }, work)
        else if (role === 'wide') await client.withMultiLock([`${name}:2`, name], { ttlMs }, work)
        else if (role === 'reader') await client.withReadLock(name, { ttlMs }, work)
        else await client.withSemaphore(name, { permits: role, ttlMs }, work)
      } catch (error) {
        if (!(error instanceof LockLostError)) throw error
      }
    }
  },
  async turn({ name, file, fair, who }) {
    const fence = await client.withLock(name, { ttlMs: 60_000, fair }, async (held) => {
      appendFileSync(file, `${who}\n`)
      return held.fence
    })
    return { fence }
  },
  async keep({ names, ttl_ms: ttlMs }) {
    kept = await Promise.all(names.map((name) => client.lock(name, { ttlMs }).acquire()))
    return { fences: kept.map(({ fence }) => fence) }
  },
  async let_go() {
    const releases = await Promise.all(kept.map((hold) => hold.release()))
    return { released: releases.filter(({ outcome }) => outcome === 'released').length }
  },
  async rotate({ names, file, stop, wait_ms: waitMs }) {
    const turns = async (name) => {
      let done = 0
      while (done === 0 || !existsSync(stop)) {
        await client.withLock(name, { waitMs, fair: name.endsWith('7') }, async (hold) => {
          for (let write = 0; write < 2; write++) {
            hold.signal.throwIfAborted()
            appendFileSync(file, `${name} ${hold.fence} node\n`)
            await setTimeout(20)
          }
        })
        done += 1
      }
      return done
    }
    return { turns: await Promise.all(names.map(turns)) }
  },
  async count({ name, file, times }) {
    for (let done = 0; done < times; done++) {
      await client.withLock(name, async () => writeFileSync(file, String(Number(readFileSync(file, 'utf8')) + 1)))
    }
    return {}
  },
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line)
  const answer = await answers[asked.do](asked).catch(({ code, holder }) => ({ error: code, holder: holder ?? null }))
  console.log(JSON.stringify(answer))
}
await client.close()
