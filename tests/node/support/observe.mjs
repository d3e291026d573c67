// Observation: a test waits until it sees a condition, instead of sleeping and hoping.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'

/** How long anything that is certain to come may take: a machine may stall, and only a test that fails waits for all of it. */
export const PATIENCE_MS = 20_000

/** In which what somebody gave up has left. */
export const PROMPTLY_MS = 1_000

/** What a machine may add to a time that is promised. It is small, or the promise would hide in it. */
export const LOAD_MS = 500

/** What `observed` comes to once it is true; fails when that takes longer than `withinMs`. */
export async function until(observed, withinMs = 5_000) {
  const deadline = performance.now() + withinMs
  for (;;) {
    const value = await observed()
    if (value) return value
    assert.ok(performance.now() < deadline, `not observed within ${withinMs} ms`)
    await sleep(5)
  }
}

/** How long `work` takes, in milliseconds, and what it comes to. */
export async function timed(work) {
  const began = performance.now()
  const value = await work()
  return { tookMs: performance.now() - began, value }
}
