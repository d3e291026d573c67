import {
  bodyOf,
  type LockCallback,
  type MultiLockCallback,
  type TryOutcome,
  type WithLockOptions,
  type WithMultiLockOptions,
  type WithReadLockOptions,
  type WithSemaphoreOptions,
} from './body.js'
import { checked, text } from './checks.js'
import { Client } from './client.js'
import { Election } from './election.js'
import { Job } from './job.js'
import { Lock } from './lock.js'
import { MultiLock, namesOf } from './multi.js'
import {
  lockOptions,
  semaphoreOptions,
  type ClientOptions,
  type CronJobOptions,
  type JobOptions,
  type LockOptions,
  type MultiLockOptions,
  type ReadLockOptions,
  type SemaphoreOptions,
} from './options.js'
import type { ServerSource } from './servers.js'
import { onBehalfOf, suspect } from './suspicions.js'

let client: Client | undefined

function defaultClient(): Client {
  return (client ??= new Client())
}

/** Makes something with the default client when it is first used. What `entry` was called with is looked at now. */
function byDefault<T>(entry: Function, name: string, options: LockOptions, make: (client: Client) => T): () => T {
  suspect(undefined, name, options, entry)
  let made: T | undefined
  return () => (made ??= make(defaultClient()))
}

/**
 * Sets the servers and options of the default client, which `lock`, `job`, `election`, `withLock` and the other functions of this
 * package use, and returns that client. Otherwise the default client is made at the first operation, with the servers that the environment's
 * `LOCKTENDER_URL` names. Locks that were used before keep their client. No I/O. Throws `InvalidArgumentError` for a bad URL or
 * option.
 *
 * @example
 * ```js
 * configure('memory://example', { prefix: 'billing:', waitMs: 5_000 })
 * console.log(await withLock('orders:42', async () => 'paid'))   // paid
 * ```
 */
export function configure(servers: ServerSource | readonly ServerSource[], options?: ClientOptions): Client
/**
 * Sets the options of the default client, whose servers the environment's `LOCKTENDER_URL` names, and returns that client.
 *
 * @example
 * ```js
 * const client = configure({ prefix: 'billing:' })
 * client.on('warning', ({ message }) => console.warn(message))
 * ```
 */
export function configure(options: ClientOptions): Client
export function configure(servers: ServerSource | readonly ServerSource[] | ClientOptions, options?: ClientOptions): Client {
  return (client = onBehalfOf(configure, () => new Client(servers as ServerSource | readonly ServerSource[], options)))
}

/**
 * The lock `name` of the default client. No I/O, and no client before its first operation. Throws `InvalidArgumentError` for an
 * unknown option; its first operation rejects with it for a bad name or value.
 *
 * @example
 * ```js
 * configure('memory://example')   // or LOCKTENDER_URL in the environment
 * const hold = await lock('orders:42', { ttlMs: 30_000 }).acquire()
 * await hold.release()
 * ```
 */
export function lock(name: string, options?: LockOptions): Lock {
  const own = lockOptions(options)
  return new Lock(name, byDefault(lock, text('name', name), own, (client) => Client.makeLock(client, name, own)))
}

/**
 * The semaphore `name` of the default client: `semaphore` of `Client`. Throws and rejects as `lock` does.
 *
 * @example
 * ```js
 * configure('memory://example')   // or LOCKTENDER_URL in the environment
 * const hold = await semaphore('renders', { permits: 5 }).acquire()
 * await hold.release()
 * ```
 */
export function semaphore(name: string, options: SemaphoreOptions): Lock {
  const own = semaphoreOptions(options)
  return new Lock(name, byDefault(semaphore, text('name', name), own, (client) => Client.makeLock(client, name, own, 'semaphore')))
}

/**
 * The read lock `name` of the default client: `readLock` of `Client`. Throws and rejects as `lock` does.
 *
 * @example
 * ```js
 * configure('memory://example')   // or LOCKTENDER_URL in the environment
 * const hold = await readLock('prices', { ttlMs: 30_000 }).acquire()
 * await hold.release()
 * ```
 */
export function readLock(name: string, options?: ReadLockOptions): Lock {
  const own = lockOptions(options)
  return new Lock(name, byDefault(readLock, text('name', name), own, (client) => Client.makeLock(client, name, own, 'readLock')))
}

/**
 * The locks of these names of the default client, acquired together: `multiLock` of `Client`. Throws and rejects as `lock` does.
 *
 * @example
 * ```js
 * configure('memory://example')   // or LOCKTENDER_URL in the environment
 * const hold = await multiLock(['account:1', 'account:2']).acquire()
 * await hold.release()
 * ```
 */
export function multiLock(names: readonly string[], options?: MultiLockOptions): MultiLock {
  const [own, given] = [lockOptions(options), namesOf(names)]
  return new MultiLock(given, byDefault(multiLock, given.join(', '), own, (client) => Client.makeMultiLock(client, given, own)))
}

/**
 * The job `name` of the default client. No I/O, and no client before its first operation. Throws `InvalidArgumentError` for an
 * unknown option; its first operation rejects with it for a bad name or value.
 *
 * @example
 * ```js
 * configure('memory://example')   // or LOCKTENDER_URL in the environment
 * const { ran } = await job('mail:7', { maxAttempts: 5 }).run(async () => 'sent')
 * console.log(ran)   // true
 * ```
 */
export function job(name: string, options?: JobOptions): Job {
  const own: JobOptions = checked('job', options)
  return new Job(name, byDefault(job, text('name', name), own, (client) => Client.makeJob(client, name, own)))
}

/**
 * The job `name` of the default client that runs once per scheduled time: `cronJob` of `Client`. Throws and rejects as `job` does.
 *
 * @example
 * ```js
 * configure('memory://example')   // or LOCKTENDER_URL in the environment
 * const { ran } = await cronJob('nightly', { everyMs: 3_600_000 }).run(async () => 'tidied')
 * console.log(ran)   // true
 * ```
 */
export function cronJob(name: string, options?: CronJobOptions): Job {
  const own: CronJobOptions = checked('cron_job', options)
  return new Job(name, byDefault(cronJob, text('name', name), own, (client) => Client.makeJob(client, name, own, 'cronJob')))
}

/**
 * The election `name` of the default client: `election` of `Client`. It stays with the client that is the default one at its first
 * use. Throws `InvalidArgumentError` for an unknown option; its first operation throws or rejects with it for a bad name or value.
 *
 * @example
 * ```js
 * configure('memory://example')   // or LOCKTENDER_URL in the environment
 * const leadership = await election('scheduler').campaign()
 * console.log(leadership.term > 0)   // true
 * await leadership.resign()
 * ```
 */
export function election(name: string, options?: LockOptions): Election {
  const own: LockOptions = checked('election', options)
  return new Election(name, byDefault(election, text('name', name), own, (client) => Client.makeElection(client, name, own)))
}

/**
 * `withLock` of the default client.
 *
 * @example
 * ```js
 * configure('memory://example')   // or LOCKTENDER_URL in the environment
 * const value = await withLock('orders:42', { waitMs: 5_000 }, async (hold) => `hold: ${hold.isValid()}`)
 * console.log(value)   // hold: true
 * ```
 */
export function withLock<T>(name: string, body: LockCallback<T>): Promise<T>
export function withLock<T>(name: string, options: WithLockOptions | undefined, body: LockCallback<T>): Promise<T>
export async function withLock<T>(name: string, options: WithLockOptions | LockCallback<T> | undefined, body?: LockCallback<T>): Promise<T> {
  const [own, run] = bodyOf(options, body, 'lock')
  return await onBehalfOf(withLock, () => defaultClient().withLock(name, own, run))
}

/**
 * `tryWithLock` of the default client.
 *
 * @example
 * ```js
 * configure('memory://example')   // or LOCKTENDER_URL in the environment
 * console.log(await tryWithLock('nightly', async () => 'done'))   // { ran: true, result: 'done' }
 * ```
 */
export function tryWithLock<T>(name: string, body: LockCallback<T>): Promise<TryOutcome<T>>
export function tryWithLock<T>(name: string, options: WithLockOptions | undefined, body: LockCallback<T>): Promise<TryOutcome<T>>
export async function tryWithLock<T>(name: string, options: WithLockOptions | LockCallback<T> | undefined, body?: LockCallback<T>): Promise<TryOutcome<T>> {
  const [own, run] = bodyOf(options, body, 'lock')
  return await onBehalfOf(tryWithLock, () => defaultClient().tryWithLock(name, own, run))
}

/**
 * `withSemaphore` of the default client.
 *
 * @example
 * ```js
 * configure('memory://example')   // or LOCKTENDER_URL in the environment
 * console.log(await withSemaphore('renders', { permits: 5 }, async () => 'rendered'))   // rendered
 * ```
 */
export async function withSemaphore<T>(name: string, options: WithSemaphoreOptions, body: LockCallback<T>): Promise<T> {
  const [own, run] = bodyOf(options, body, 'semaphore')
  return await onBehalfOf(withSemaphore, () => defaultClient().withSemaphore(name, own as WithSemaphoreOptions, run))
}

/**
 * `tryWithSemaphore` of the default client.
 *
 * @example
 * ```js
 * configure('memory://example')   // or LOCKTENDER_URL in the environment
 * console.log(await tryWithSemaphore('renders', { permits: 5 }, async () => 'rendered'))   // { ran: true, result: 'rendered' }
 * ```
 */
export async function tryWithSemaphore<T>(name: string, options: WithSemaphoreOptions, body: LockCallback<T>): Promise<TryOutcome<T>> {
  const [own, run] = bodyOf(options, body, 'semaphore')
  return await onBehalfOf(tryWithSemaphore, () => defaultClient().tryWithSemaphore(name, own as WithSemaphoreOptions, run))
}

/**
 * `withReadLock` of the default client.
 *
 * @example
 * ```js
 * configure('memory://example')   // or LOCKTENDER_URL in the environment
 * console.log(await withReadLock('prices', { waitMs: 5_000 }, async () => 7))   // 7
 * ```
 */
export function withReadLock<T>(name: string, body: LockCallback<T>): Promise<T>
export function withReadLock<T>(name: string, options: WithReadLockOptions | undefined, body: LockCallback<T>): Promise<T>
export async function withReadLock<T>(name: string, options: WithReadLockOptions | LockCallback<T> | undefined, body?: LockCallback<T>): Promise<T> {
  const [own, run] = bodyOf(options, body, 'readLock')
  return await onBehalfOf(withReadLock, () => defaultClient().withReadLock(name, own, run))
}

/**
 * `tryWithReadLock` of the default client.
 *
 * @example
 * ```js
 * configure('memory://example')   // or LOCKTENDER_URL in the environment
 * console.log(await tryWithReadLock('prices', async () => 7))   // { ran: true, result: 7 }
 * ```
 */
export function tryWithReadLock<T>(name: string, body: LockCallback<T>): Promise<TryOutcome<T>>
export function tryWithReadLock<T>(name: string, options: WithReadLockOptions | undefined, body: LockCallback<T>): Promise<TryOutcome<T>>
export async function tryWithReadLock<T>(name: string, options: WithReadLockOptions | LockCallback<T> | undefined, body?: LockCallback<T>): Promise<TryOutcome<T>> {
  const [own, run] = bodyOf(options, body, 'readLock')
  return await onBehalfOf(tryWithReadLock, () => defaultClient().tryWithReadLock(name, own, run))
}

/**
 * `withMultiLock` of the default client.
 *
 * @example
 * ```js
 * configure('memory://example')   // or LOCKTENDER_URL in the environment
 * console.log(await withMultiLock(['account:1', 'account:2'], { waitMs: 5_000 }, async () => 'paid'))   // paid
 * ```
 */
export function withMultiLock<T>(names: readonly string[], body: MultiLockCallback<T>): Promise<T>
export function withMultiLock<T>(names: readonly string[], options: WithMultiLockOptions | undefined, body: MultiLockCallback<T>): Promise<T>
export async function withMultiLock<T>(
  names: readonly string[],
  options: WithMultiLockOptions | MultiLockCallback<T> | undefined,
  body?: MultiLockCallback<T>,
): Promise<T> {
  const [own, run] = bodyOf(options, body, 'multiLock')
  return await onBehalfOf(withMultiLock, () => defaultClient().withMultiLock(names, own, run))
}

/**
 * `tryWithMultiLock` of the default client.
 *
 * @example
 * ```js
 * configure('memory://example')   // or LOCKTENDER_URL in the environment
 * console.log(await tryWithMultiLock(['account:1', 'account:2'], async () => 'paid'))   // { ran: true, result: 'paid' }
 * ```
 */
export function tryWithMultiLock<T>(names: readonly string[], body: MultiLockCallback<T>): Promise<TryOutcome<T>>
export function tryWithMultiLock<T>(
  names: readonly string[],
  options: WithMultiLockOptions | undefined,
  body: MultiLockCallback<T>,
): Promise<TryOutcome<T>>
export async function tryWithMultiLock<T>(
  names: readonly string[],
  options: WithMultiLockOptions | MultiLockCallback<T> | undefined,
  body?: MultiLockCallback<T>,
): Promise<TryOutcome<T>> {
  const [own, run] = bodyOf(options, body, 'multiLock')
  return await onBehalfOf(tryWithMultiLock, () => defaultClient().tryWithMultiLock(names, own, run))
}
