// Waiting for what a test observes, instead of sleeping and hoping.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'

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

