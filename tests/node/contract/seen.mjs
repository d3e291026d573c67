// Seen values: the results of a step, in the form of the cases.

import assert from 'node:assert/strict'

import * as locktender from 'locktender'

export function look(held) {
  let check = null
  try {
    held.check()
  } catch (error) {
    check = error.code
  }
  const { owner } = held
  const names =
    held instanceof locktender.MultiHold ? { names: held.names, fences: [...held.fences.values()] } : { name: held.name, fence: held.fence }
  const seen = { ...names, owner, remaining_ms: held.remainingMs(), valid: held.isValid(), check }
  if (held instanceof locktender.Leadership) return { ...seen, term: held.term }
  if (!(held instanceof locktender.Attempt)) return seen
  return { ...seen, number: held.number, max_attempts: held.maxAttempts, is_last: held.isLast }
}

export function outcomeOf({ ran, reason, result, attempts, lastError }) {
  return { ran, reason, result, attempts, last_error: lastError }
}

export function statusOf({ state, attempts, maxAttempts, lastOwner, beganAgoMs, remainingMs, retryInMs, lastError, result, scheduledTime, lastDone }, start) {
  return {
    state,
    attempts,
    max_attempts: maxAttempts,
    last_owner: lastOwner,
    began_ago_ms: beganAgoMs,
    remaining_ms: remainingMs,
    retry_in_ms: retryInMs,
    last_error: lastError,
    result,
    scheduled_time_ms: scheduledTime && scheduledTime.getTime() - start,
    last_done_ms: lastDone && lastDone.getTime() - start,
  }
}

/** The time that remains, as the cases write it. */
function left(ms) {
  return ms === Infinity ? 'forever' : ms
}

export function show(info) {
  if (!info) return { free: true }
  const { name, owner, fields, fence, holderCount, holders, available, waiters, queue } = info
  const several = { holder_count: holderCount, holders, available }
  return { free: false, name, owner, fields: fields && { ...fields, at: fields.at.toISOString() }, remaining_ms: left(info.remainingMs), fence, ...several, waiters, queue }
}

export function showGrant({ name, owner, fields, fence, began, ended, state, isShared }) {
  return { name, owner, fence, state, is_shared: isShared, pid: fields?.pid ?? null, lasted_ms: ended && ended - began }
}

export function showHold({ name, kind, owner, fence, heldForMs, remainingMs }) {
  return { name, kind, owner, fence, held_for_ms: heldForMs, remaining_ms: remainingMs }
}

export function observed({ leader, unknown }) {
  if (!leader) return { leader, unknown }
  const { owner, term, since, remainingMs } = leader
  return { leader: { owner, term, since: since.toISOString(), remaining_ms: left(remainingMs) }, unknown }
}

export function ended({ outcome, nextOwner, nextFence, overrunMs, keptMs }) {
  return { outcome, next_owner: nextOwner, next_fence: nextFence, overrun_ms: overrunMs, kept_ms: keptMs }
}

export function describe(error) {
  // The class is the code in another spelling.
  const name = error.code.toLowerCase().replace(/(^|_)([a-z])/g, (_, __, letter) => letter.toUpperCase()) + 'Error'
  assert.ok(error instanceof locktender[name] && error.name === name, `${error.code} is a ${error.name}`)
  const { code, message, lockName = null, holder = null, rank = null, reason = null, nextOwner = null, nextFence = null, result = null, servers = [] } = error
  const remaining = holder === null ? null : left(error.remainingMs)
  return {
    error: code,
    message,
    lock_name: lockName,
    holder,
    holder_remaining_ms: remaining,
    rank,
    reason,
    next_owner: nextOwner,
    next_fence: nextFence,
    overrun_ms: error.overrunMs ?? 0,
    attempts: error.attempts ?? null,
    last_error: error.lastError ?? null,
    servers: servers.map(({ server, kind, message }) => ({ server, kind, message })),
    result,
  }
}
