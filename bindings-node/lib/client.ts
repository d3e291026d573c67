import { inspect } from 'node:util'

import type * as native from '../native/index.js'
import type { AdoptOptions } from './body.js'
import { checked, flag, text } from './checks.js'
import type { Made } from './core.js'
import { provide } from './credentials.js'
import { Election } from './election.js'
import type { Listener } from './emitter.js'
import { InvalidArgumentError, valueOf } from './errors.js'
import { enrol, isEvent, ofNormalLife, type ClientEvents } from './events.js'
import { Hold } from './hold.js'
import { ofIoredis, type IoredisLike } from './ioredis.js'
import { Job } from './job.js'
import { Locking } from './locking.js'
import {
  clientOptions,
  lockOptions,
  signalOf,
  type ClientOptions,
  type CronJobOptions,
  type JobOptions,
  type LockOptions,
} from './options.js'
import { Overview } from './overview.js'
import { outcome, outcomeUnless, queue, resultOf, type Granted } from './queue.js'
import { serversAnd, type ServerSource } from './servers.js'
import { onBehalfOf, suspect } from './suspicions.js'
import { traced } from './tracing.js'
import { answerWords } from './words.js'

/**
 * The connection to one lock server or to a quorum of independent ones. It is lazy: it connects at the first operation. It emits
 * every event by its kind, and all of them as `event`.
 *
 * @example
 * ```js
 * const client = new Client('memory://example')   // redis://localhost is a real server
 * client.on('lost', ({ lockName, reason }) => console.error(lockName, reason))
 * await client.withLock('orders:42', async (hold) => {
 *   console.log(hold.isValid())   // true
 * })
 * await client.close()
 * ```
 */
export class Client extends Locking implements AsyncDisposable {
  get #native(): native.Client {
    return Overview.nativeOf(this)
  }

  /**
   * A client of the servers. No I/O. Throws `InvalidArgumentError` for a bad URL or option.
   *
   * @param servers a URL (`redis://`, `rediss://` for TLS, `unix://`, `redis+sentinel://host,host/service`,
   * `redis+cluster://host,host`, with TLS `rediss+…`, or `memory://name`; `valkey` in the place of `redis` means the same), or several
   * (an array, or one string split at commas): a quorum. Without servers, the environment's `LOCKTENDER_URL` names them; if it isn't
   * set, the first operation fails and says so.
   * @example
   * ```js
   * const client = new Client('memory://example', { prefix: 'billing:', waitMs: 5_000 })
   * const quorum = new Client(['memory://a', 'memory://b', 'memory://c'])   // independent servers
   * ```
   */
  constructor(servers?: ServerSource | readonly ServerSource[], options?: ClientOptions)
  /**
   * A client of the servers that the environment's `LOCKTENDER_URL` names.
   *
   * @example
   * ```js
   * const client = new Client({ ttlMs: 30_000 })
   * ```
   */
  constructor(options?: ClientOptions)
  constructor(servers?: ServerSource | readonly ServerSource[] | ClientOptions, options?: ClientOptions) {
    const [sources, given] = serversAnd(servers, options)
    const { credentials, ...own } = clientOptions(given)
    super(valueOf(queue.open(sources, own, credentials !== undefined)))
    enrol(this.#native.id, this)
    if (credentials) provide(this, credentials)
    suspect(this.#native, null, own, new.target)
    super.on('newListener' as never, this.#listened as never)
  }

  /**
   * A client for the server that an ioredis client uses. Its address, credentials, TLS and database are copied, and its `keyPrefix`
   * unless `prefix` is given. The client has its own connection. Sentinels are copied, too, and the nodes of a `Cluster`. Throws
   * `InvalidArgumentError` for a client of replicas, and for settings that can't be copied.
   *
   * @example
   * ```js
   * const redis = new Redis('redis://localhost', { lazyConnect: true })   // Redis is a class of ioredis
   * const client = Client.fromIoredis(redis, { waitMs: 5_000 })
   * ```
   */
  static fromIoredis(redis: IoredisLike, options?: ClientOptions): Client {
    return onBehalfOf(Client.fromIoredis, () => new Client(...ofIoredis(redis, clientOptions(options) as ClientOptions)))
  }

  /**
   * The job `name`: work that must be done once, by one of any number of workers. Its name is that of a lock, which is held while an
   * attempt runs. No I/O. Options of the lock that aren't given are the client's. Throws `InvalidArgumentError` for a bad name or
   * option, and if the client has several servers.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * const { ran, result } = await client.job('mail:7', { retryDelayMs: 1_000 }).run(async () => 'sent')
   * console.log(ran, result)   // true sent
   * ```
   */
  job(name: string, options?: JobOptions): Job {
    const own: JobOptions = checked('job', options)
    const job = Client.makeJob(this, text('name', name), own)
    suspect(this.#native, name, own, Client.prototype.job)
    return new Job(name, () => job)
  }

  /** @internal */
  static makeJob(client: Client, name: string, options: JobOptions, kind: 'job' | 'cronJob' = 'job'): Made<native.Job> {
    return { core: valueOf(Overview.makerOf(client)[kind](name, options)), client }
  }

  /**
   * The job `name` of a schedule: work that must run once per scheduled time, however many replicas a cron line or a timer starts
   * it in. No I/O.
   *
   * It is a `Job` that begins again with each later scheduled time, and never again for one that has begun. Its outcome says the
   * `reason` why nothing ran, which is no error. Throws as `job` does.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * const nightly = () => client.cronJob('nightly', { everyMs: 3_600_000 }).run(async () => ({ tidied: 3 }))   // in each replica, at 02:00
   * console.log((await nightly()).ran, (await nightly()).reason)   // true done
   * ```
   */
  cronJob(name: string, options?: CronJobOptions): Job {
    const own: CronJobOptions = checked('cron_job', options)
    const job = Client.makeJob(this, text('name', name), own, 'cronJob')
    suspect(this.#native, name, own, Client.prototype.cronJob)
    return new Job(name, () => job)
  }

  /**
   * The election `name`: one leader of any number of candidates. Its name is that of a lock, which is held by the leader. No
   * I/O. The options are those of a lock: `ttlMs` is how long a leader that dies blocks the next one, `waitMs` how long a campaign
   * waits. Those that aren't given are the client's. Throws `InvalidArgumentError` for a bad name or option.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * const leadership = await client.election('scheduler', { ttlMs: 5_000 }).campaign()
   * console.log(leadership.term > 0)   // true
   * await leadership.resign()
   * ```
   */
  election(name: string, options?: LockOptions): Election {
    const own: LockOptions = checked('election', options)
    const election = Client.makeElection(this, text('name', name), own)
    suspect(this.#native, name, own, Client.prototype.election)
    return new Election(name, () => election)
  }

  /** @internal */
  static makeElection(client: Client, name: string, options: LockOptions): Made<native.Election> {
    return { core: valueOf(Overview.makerOf(client).election(name, options)), client }
  }

  /**
   * Takes a lock over from another process, by the string that its `handOver` returned. The hold is a new one, with a larger fence.
   * Its ttl is that of the hold that was handed over, unless `ttlMs` is given.
   *
   * Rejects with `LockLostError`, reason `ended`, if that hold has ended or was adopted before. An earlier attempt of this call
   * that lost its answer counts, too. With `{ orAcquire: true }` the lock is then acquired like any other: the call waits for it.
   * The work that the old hold protected may be unfinished.
   *
   * Rejects with `InvalidArgumentError` for any other string, and if the two clients have different prefixes. Otherwise rejects as
   * `acquire` does.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * const ticket = (await client.lock('report').acquire()).handOver()   // in one process
   * const hold = await client.adopt(ticket)                             // in another one
   * console.log(hold.name)   // report
   * await hold.release()
   * ```
   */
  async adopt(ticket: string, options?: AdoptOptions): Promise<Hold> {
    const own = lockOptions(options, ['signal', 'orAcquire'])
    const lock = valueOf(Overview.makerOf(this).adoption(text('ticket', ticket), flag('orAcquire', options?.orAcquire), own))
    suspect(this.#native, lock.name, own, Client.prototype.adopt)
    return await traced('acquire', lock.name, async () => {
      const granted = resultOf<Granted>(await outcomeUnless(signalOf(options), () => lock.acquire()))
      return new Hold(lock.name, this, granted)
    })
  }

  /**
   * Marks the servers of a quorum as trusted, so that they vote at once instead of after `maxTtlMs`. Use it only for new servers,
   * and only while no lock of this quorum may be held by any client. It does nothing with one server.
   *
   * Rejects with `UnavailableError` if a server doesn't answer; those that did are then trusted. Rejects with
   * `InvalidArgumentError` if a server belongs to a quorum of another size or `maxTtlMs`.
   *
   * @example
   * ```js
   * const client = new Client(['memory://a', 'memory://b', 'memory://c'])
   * await client.initializeQuorum()   // these servers are new, and no lock is held on them
   * const hold = await client.lock('nightly').acquire()   // without it: after maxTtlMs, a minute
   * await hold.release()
   * ```
   */
  async initializeQuorum(): Promise<void> {
    resultOf(await outcome(this.#native.initializeQuorum()))
  }

  /**
   * Closes the client. Acquires under way reject with `ClosedError`. Held locks are lost (reason `closed`) and released. Then the
   * connections are closed. This takes about a response timeout at most. To close a client twice does nothing.
   *
   * @example
   * ```js
   * const client = new Client('memory://example')
   * const hold = await client.lock('nightly').acquire()
   * await client.close()
   * console.log(hold.isValid(), (await hold.lost).reason)   // false closed
   * ```
   */
  async close(): Promise<void> {
    resultOf(await outcome(this.#native.close()))
  }

  /**
   * Closes the client.
   *
   * @example
   * ```js
   * await using client = new Client('memory://example')   // closed at the end of this block
   * await client.withLock('nightly', async () => 'done')
   * ```
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** @internal */
  [inspect.custom](): string {
    const { servers, prefix, closed } = this.#native.shown()
    return `Client ${inspect({ servers, prefix, closed }, { breakLength: Infinity })}`
  }

  /** @internal */
  override once<K extends keyof ClientEvents>(event: K, listener: Listener<K>): this {
    if (typeof listener === 'function') return super.once(event, listener)
    throw InvalidArgumentError.of('listener', listener, 'must be a function; work that runs once per scheduled time is cronJob(name, options)')
  }

  /** @internal */
  override removeAllListeners(event?: string | symbol): this {
    super.removeAllListeners(event)
    // It is the client's own, and no listener of the program's.
    return super.off('newListener' as never, this.#listened as never).on('newListener' as never, this.#listened as never)
  }

  /** A listener is added. The core sends what had no listener before. */
  readonly #listened = (name: string | symbol): void => {
    if (isEvent(name) && ofNormalLife(name)) this.#native.hear()
  }
}

answerWords(Client.prototype, ['elect', 'ping', 'quit', 'report', 'using'])
