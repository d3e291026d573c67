// What users write, as the compiler sees it. Compiled by types.test.mjs in each way in which users compile; never run.


import type { EventEmitter } from 'node:events'

import { Client, configure, cronJob, job, JobDeadError, lock, LockError, LockLostError, multiLock, readLock, semaphore, tryWithLock, tryWithMultiLock, tryWithReadLock, tryWithSemaphore, UnavailableError, withLock, withMultiLock, withReadLock, withSemaphore } from 'locktender'
import type { Attempt, ClientOptions, Election, Hold, Job, JobOptions, JobOutcome, JobState, JobStatus, Leader, Leadership, Lock, LockEvent, LockInfo, LockOptions, LossReason, MultiHold, MultiLock, MultiLockOptions, NotRunReason, CronJobOptions, TryOutcome, ReadLockOptions, Release, SemaphoreOptions, ServerReport, WithMultiLockOptions, WithReadLockOptions, WithSemaphoreOptions } from 'locktender'
import { Clock, ScriptedServer, type Seen } from 'locktender/testing'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
/** Fails to compile unless the types are the same. */
declare function same<A, B>(proof: Same<A, B>): void

export async function uses(signal: AbortSignal, maybe: number | undefined): Promise<void> {
  const options: ClientOptions = { prefix: 'p:', app: 'a', ttlMs: 1_000, tlsCa: 'ca.pem', maxTtlMs: 60_000 }
  configure('redis://localhost', options)
  const made: Client = configure(['redis://a', 'redis://b', 'redis://c'])
  made.on('lost', (event) => same<typeof event, LockEvent>(true))
  made.off('lost', (event) => same<typeof event, LockEvent>(true)).emit('lost', {} as LockEvent)
  made satisfies EventEmitter
  made.listenerCount('lost') satisfies number
  await using client = new Client(['redis://a', new ScriptedServer('acquire: busy')] as const)
  new Client()
  new Client({ prefix: 'p:' })
  new Client([new URL('redis://localhost')])
  configure({ app: 'a' })

  const given: LockOptions = { ttlMs: maybe, waitMs: Infinity, renew: undefined, maxHoldMs: 5_000 }
  const recipe: Lock = client.lock('orders', given)
  await using held = await recipe.acquire({ signal })
  const perhaps = await recipe.tryAcquire()
  same<typeof perhaps, Hold | null>(true)
  const info: LockInfo | null = await recipe.inspect()
  const [pid, remaining] = [info?.fields?.pid, info?.remainingMs]
  same<typeof pid, number | null | undefined>(true)
  same<typeof remaining, number | undefined>(true)

  same<[string, string, number, number, boolean], [typeof held.name, typeof held.owner, typeof held.fence, number, boolean]>(true)
  held.check()
  held.signal satisfies AbortSignal
  const lost = await held.lost
  same<typeof lost, LockLostError | null>(true)
  await held.extend()
  await held.extend({ ttlMs: maybe })
  await held.extend({ byMs: 500 })
  const { outcome, nextOwner, nextFence, overrunMs, keptMs }: Release = await held.release()
  same<typeof outcome, 'released' | 'expired' | 'taken'>(true)
  same<[typeof nextOwner, typeof nextFence, typeof overrunMs, typeof keptMs], [string | null, number | null, number, number]>(true)
  const adopted: Hold = await client.adopt(held.handOver(), { ttlMs: 1_000, orAcquire: true, signal })
  adopted.isValid() && adopted.remainingMs().toFixed()

  const plain = await client.withLock('orders', (inside) => inside.fence)
  same<typeof plain, number>(true)
  const later = await withLock('orders', { waitMs: 0, signal }, async () => 'text' as const)
  same<typeof later, 'text'>(true)
  const ran = await client.tryWithLock('orders', { ttlMs: 5_000 }, async () => [1])
  same<typeof ran, TryOutcome<number[]>>(true)
  if (ran.ran) ran.result.length
  const { ran: hasRun, result } = await client.tryWithLock('orders', async () => [1])
  same<[typeof hasRun, typeof result], [boolean, number[] | undefined]>(true)
  if (hasRun) result.length
  await tryWithLock('orders', () => undefined)
  await lock('orders').acquire()

  const limit: SemaphoreOptions = { permits: 5, ttlMs: maybe, waitMs: Infinity, fair: true }
  const around: WithSemaphoreOptions = { ...limit, signal }
  const reads: WithReadLockOptions = { ttlMs: 1, signal } satisfies ReadLockOptions & { signal: AbortSignal }
  void client.withReadLock('prices', reads, () => 1)
  const [renders, prices]: Lock[] = [client.semaphore('renders', limit), client.readLock('prices', given)]
  const [count, available] = [(await renders?.inspect())?.holderCount, (await prices?.inspect())?.available]
  same<[typeof count, typeof available], [number | undefined, number | null | undefined]>(true)
  same<readonly string[], LockInfo['holders']>(true)
  const reader: Hold = await (await client.lock('prices').acquire()).downgrade()
  same<number, Awaited<ReturnType<typeof client.withSemaphore<number>>>>(true)
  const fence = await client.withSemaphore('renders', around, (inside) => inside.fence)
  const tried = await client.tryWithSemaphore('renders', { permits: 5 }, async () => [reader.fence])
  same<[typeof fence, typeof tried], [number, TryOutcome<number[]>]>(true)
  const read = await client.withReadLock('prices', async () => 'text' as const)
  const perhapsRead = await client.tryWithReadLock('prices', { waitMs: 0, signal }, () => 7)
  same<[typeof read, typeof perhapsRead], ['text', TryOutcome<number>]>(true)
  const several: MultiLockOptions = { ttlMs: maybe, waitMs: Infinity, category: 'accounts' }
  const aroundAll: WithMultiLockOptions = { ...several, signal }
  // @ts-expect-error: several locks have no order of their own
  client.multiLock(['a', 'b'], { fair: true })
  const accounts: MultiLock = client.multiLock(['a', 'b'] as const, several)
  await using all = await accounts.acquire({ signal })
  same<[typeof accounts.names, typeof all.names, typeof all.fences, string], [readonly string[], readonly string[], ReadonlyMap<string, number>, typeof all.owner]>(true)
  // Of one lock only.
  same<'name' | 'fence' | 'handOver' | 'downgrade', Exclude<keyof Hold, keyof MultiHold>>(true)
  const [all1, all2] = [await accounts.tryAcquire(), await client.withMultiLock(['a', 'b'], aroundAll, (inside) => inside.fences.size)]
  same<[typeof all1, typeof all2], [MultiHold | null, number]>(true)
  const triedAll = await tryWithMultiLock(['a', 'b'], async (inside) => inside.names)
  same<typeof triedAll, TryOutcome<readonly string[]>>(true)
  await multiLock(['a', 'b']).acquire()
  await withMultiLock(['a', 'b'], () => client.tryWithMultiLock(['c'], aroundAll, () => undefined))
  await semaphore('renders', { permits: 5 }).acquire()
  await readLock('prices').acquire()
  await withSemaphore('renders', { permits: 5 }, () => tryWithSemaphore('renders', around, () => undefined))
  await withReadLock('prices', () => tryWithReadLock('prices', () => undefined))

  const terms: JobOptions = { maxAttempts: 5, retryDelayMs: maybe, retentionMs: 86_400_000, ttlMs: 1_000, waitMs: 0, renew: true, fair: false }
  const mail: Job = client.job('mail:7', terms)
  const done: JobOutcome = await mail.run(async (attempt) => ({ sent: attempt.number, last: attempt.isLast }), { signal })
  same<[typeof done.reason, typeof done.ran, typeof done.attempts, typeof done.result], [NotRunReason | null, boolean, number, unknown]>(true)
  await mail.run(() => undefined)
  const attempt: Attempt | null = await mail.begin({ signal })
  try {
    await attempt?.complete()
    await attempt?.complete({ sent: 3 })
    attempt satisfies Hold | null
  } catch (error) {
    await attempt?.fail(error, { retryInMs: maybe })
    await attempt?.release()
  }
  const { state, maxAttempts, lastError }: JobStatus = await mail.status()
  same<[typeof state, typeof maxAttempts, typeof lastError], [JobState, number | null, string | null]>(true)
  same<boolean, Awaited<ReturnType<typeof mail.reset>>>(true)
  await job('mail:7', { maxAttempts: 1 }).run((own) => own.fence)

  const schedule: CronJobOptions = { at: new Date(), everyMs: 60_000, maxLatenessMs: maybe, onOverlap: 'wait', maxAttempts: 2, ttlMs: 1_000 }
  const nightly: Job = client.cronJob('nightly', schedule)
  await nightly.run((own) => own.fence)
  same<Date | null, Awaited<ReturnType<typeof nightly.status>>['scheduledTime']>(true)
  await cronJob('nightly', { at: Date.now() }).run(() => undefined)

  const election: Election = client.election('scheduler', { ttlMs: 5_000, waitMs: maybe })
  const leadership: Leadership = await election.campaign({ signal })
  same<[typeof leadership.term, Awaited<ReturnType<typeof leadership.resign>>], [number, Release]>(true)
  leadership satisfies Hold
  same<Leadership | null, Awaited<ReturnType<typeof election.tryCampaign>>>(true)
  for await (const { leader, unknown } of election.observe({ signal })) same<[typeof leader, typeof unknown], [Leader | null, boolean]>(true)
  if (maybe === 0) return await election.lead(async ({ term, signal: own }) => [term, own.aborted], { signal })

  client.on('dead', ({ attempt: number, message }) => [number satisfies number | null, message])
  client.on('lost', (event: LockEvent) => event.reason satisfies LossReason | null)
  client.once('event', ({ kind, tookMs }) => (kind === 'overlapped' ? tookMs : null))
  const reports: ServerReport[] = await client.checkServers()
  reports[0]?.warnings.join()
  await client.initializeQuorum()
  await client.close()

  const server = new ScriptedServer('always any: fail refused', { name: 'a', responseTimeoutMs: 10 }).play('acquire: real')
  const seen: Seen[] = server.seen
  seen.length + server.unplayed
  using clock = new Clock()
  await clock.advance(30_000)
}

export function errors(error: unknown): string | null {
  if (error instanceof LockLostError) return error.reason satisfies LossReason
  if (error instanceof JobDeadError) return `${error.attempts.toFixed()} ${error.lastError}`
  if (error instanceof UnavailableError) return error.servers.map(({ server, kind, message }) => `${server} ${kind} ${message}`).join()
  return error instanceof LockError ? error.lockName : null
}

export async function refused(client: Client, held: Hold, ran: TryOutcome<number>): Promise<void> {
  // @ts-expect-error an unknown option
  client.lock('orders', { ttl: 5 })
  // @ts-expect-error an option of another kind
  client.lock('orders', { ttlMs: '5 s' })
  // @ts-expect-error a client's option
  client.lock('orders', { prefix: 'p:' })
  // @ts-expect-error an unknown option of a client
  new Client({ ttl: 5 })
  // @ts-expect-error an option of a job
  client.lock('orders', { maxAttempts: 5 })
  // @ts-expect-error no permits
  client.semaphore('renders', { ttlMs: 5_000 })
  // @ts-expect-error an option that a semaphore has not
  client.semaphore('renders', { permits: 5, minHoldMs: 5_000 })
  // @ts-expect-error no options
  await client.withSemaphore('renders', () => 7)
  // @ts-expect-error an option of a semaphore
  client.lock('orders', { permits: 5 })
  // @ts-expect-error no work
  await client.job('mail:7').run({ signal: held.signal })
  // @ts-expect-error no name
  client.lock()
  // @ts-expect-error no body
  await client.withLock('orders', {})
  // @ts-expect-error only a signal
  await client.lock('orders').acquire({ waitMs: 5 })
  // @ts-expect-error data
  held.fence = 7
  // @ts-expect-error by a name
  await held.extend(60_000)
  // @ts-expect-error not known to have run
  ran.result.toFixed()
  // @ts-expect-error no such event
  client.on('loss', () => undefined)
  // @ts-expect-error nobody makes a hold but acquire
  held.leave()
}
