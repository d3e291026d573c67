// Clock: the wall clock of a process that a test sets. `tests/clock.c` explains how.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

import { root } from './checkout.mjs'

/** Gives a function that makes, of milliseconds, the environment of a process whose wall clock is ahead by them. */
export function clocks(t) {
  const place = mkdtempSync(path.join(tmpdir(), 'locktender-clock-'))
  t.after(() => rmSync(place, { recursive: true }))
  const library = path.join(place, 'clock.so')
  execFileSync(process.env.CC ?? 'cc', ['-O2', '-shared', '-fPIC', '-o', library, path.join(root, 'tests/clock.c')])
  return (aheadMs) => {
    const file = path.join(place, `${aheadMs}`)
    writeFileSync(file, new BigInt64Array([BigInt(aheadMs) * 1_000n]))
    return { LD_PRELOAD: library, LOCKTENDER_CLOCK: file }
  }
}
