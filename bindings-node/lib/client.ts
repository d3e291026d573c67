import { EventEmitter } from 'node:events'

import type * as native from '../native/index.js'
import { InvalidArgumentError, valueOf, type ServerError } from './errors.js'
import { diagnostics, enrol, ofNormalLife, type ClientEvents } from './events.js'
import { during, Held } from './held.js'
import { ofIoredis, type IoredisLike } from './ioredis.js'
import { Lock, type Made } from './lock.js'
import { clientOptions, flag, lockOptions, signalOf, text, type AcquireOptions, type ClientOptions, type LockOptions } from './options.js'
import { outcome, outcomeUnless, queue, resultOf, type Granted } from './queue.js'
import { serversAnd, type Server } from './servers.js'
import { onBehalfOf, suspect } from './suspicions.js'

/** Options of `withLock`: those of the lock, and a signal that ends the wait for it. */
export type WithLockOptions = LockOptions & AcquireOptions

/** Options of `adopt`. */
export type AdoptOptions = WithLockOptions & {
  /** Whether to acquire the lock like any other if the hold that was handed over is gone. Default false: `LOCK_LOST` then. */
  orAcquire?: boolean
}

/** What runs while the lock is held. */
export type Body<T> = (held: Held) => T | PromiseLike<T>

/** What `tryWithLock` came to. */
export type Ran<T> = { readonly ran: true; readonly value: T } | { readonly ran: false }

/** What one server really guarantees. */
export interface ServerReport {
  readonly server: string
  /** Why it didn't answer; the rest is then `null`. */
  readonly error: ServerError | null
  readonly version: string | null
  readonly role: string | null
  /** `aof`, `rdb` or `none`. */
  readonly persistence: string | null
  /** The eviction policy; anything but `noeviction` may evict a lock. */
  readonly eviction: string | null
  /** How far its clock is ahead of this machine's; negative if behind. */
  readonly clockOffsetMs: number | null
  /** What locks need and this client's user may not do, one line each; `null` if that can't be told. */
  readonly denied: readonly string[] | null
  readonly warnings: readonly string[]
}

/**
 * The connection to one lock server or to a quorum of independent ones. Lazy: nothing is connected before the first
 * operation. Emits every event by its kind, and all of them as `event`.
 */
export class Client extends EventEmitter<ClientEvents> implements AsyncDisposable {
  readonly #native: native.Client

  /**
   * @param servers a URL (`redis://`, `rediss://`, `unix://`, `memory://name`), or several (an array, or one string split at
   * commas): a quorum. Without any, what the environment's `LOCKTENDER_URL` names; if that isn't set, the first operation says so.
   */
  constructor(servers?: Server | readonly Server[], options?: ClientOptions)
  /** A client of what the environment's `LOCKTENDER_URL` names. */
  constructor(options?: ClientOptions)
  constructor(servers?: Server | readonly Server[] | ClientOptions, options?: ClientOptions) {
    super()
    const [sources, given] = serversAnd(servers, options)
    const own = clientOptions(given)
    this.#native = valueOf(queue.open(sources, own))
    enrol(this.#native.id, this)
    suspect(this.#native, null, own, new.target)
    const hear = (name: string) => {
      if (ofNormalLife(name)) this.#native.hear()
    }
    super.on('newListener' as never, hear as never)
  }

  /**
   * A client for the server that an ioredis client uses: its address, credentials, TLS and database are copied, and its `keyPrefix`
   * unless `prefix` is given. The connection is the client's own. Clients of a cluster or of sentinels are refused.
   */
  static fromIoredis(redis: IoredisLike, options?: ClientOptions): Client {
    return onBehalfOf(Client.fromIoredis, () => new Client(...ofIoredis(redis, clientOptions(options) as ClientOptions)))
  }

  /** The lock `name`. No I/O. Throws `InvalidArgumentError` for a bad name or option. */
  lock(name: string, options?: LockOptions): Lock {
    return this.#lock(name, lockOptions(options), Client.prototype.lock)
  }

  #lock(name: string, options: native.LockOptions, entry: Function): Lock {
    const lock = Client.makeLock(this, text('name', name), options)
    suspect(this.#native, name, options, entry)
    return new Lock(name, () => lock)
  }

  /** @internal */
  static makeLock(client: Client, name: string, options: native.LockOptions): Made {
    client.#hear()
    return { native: valueOf(client.#native.lock(name, options)), client }
  }

  /**
   * Acquires the lock, runs `body` while holding it, and gives it back on every way out.
   *
   * Resolves to what the body came to. Rejects with the body's error (the lock's own, if there is one too, is its `lockError`),
   * with `LockLostError` (its `result` is the body's) if the lock was lost meanwhile, or as `acquire` does. `held.signal` is
   * aborted on loss; the option `signal` ends the wait for the lock, and is yours once the body runs.
   */
  withLock<T>(name: string, body: Body<T>): Promise<T>
  withLock<T>(name: string, options: WithLockOptions | undefined, body: Body<T>): Promise<T>
  async withLock<T>(name: string, options: WithLockOptions | Body<T> | undefined, body?: Body<T>): Promise<T> {
    const [own, run] = bodyOf(options, body)
    const held = await this.#lock(name, lockOptions(own, ['signal']), Client.prototype.withLock).acquire({ signal: signalOf(own) })
    return await during(held, run)
  }

  /** As `withLock`, but tries only once: `{ ran: false }` if the lock is busy. */
  tryWithLock<T>(name: string, body: Body<T>): Promise<Ran<T>>
  tryWithLock<T>(name: string, options: WithLockOptions | undefined, body: Body<T>): Promise<Ran<T>>
  async tryWithLock<T>(name: string, options: WithLockOptions | Body<T> | undefined, body?: Body<T>): Promise<Ran<T>> {
    const [own, run] = bodyOf(options, body)
    const held = await this.#lock(name, lockOptions(own, ['signal']), Client.prototype.tryWithLock).tryAcquire({ signal: signalOf(own) })
    return held ? { ran: true, value: await during(held, run) } : { ran: false }
  }

  /**
   * Takes a lock over from another process, by the string its `handOver` gave. The two clients must have the same prefix. Rejects
   * with `LockLostError`, reason `ended`, if that hold has ended or was adopted before, also by an attempt of this call that lost
   * its answer. `{ orAcquire: true }` acquires the lock then, like any other: it waits for it, and what that hold protected may be
   * half done.
   */
  async adopt(ticket: string, options?: AdoptOptions): Promise<Held> {
    this.#hear()
    const own = lockOptions(options, ['signal', 'orAcquire'])
    const lock = valueOf(this.#native.adoption(text('ticket', ticket), flag('orAcquire', options?.orAcquire), own))
    suspect(this.#native, lock.name, own, Client.prototype.adopt)
    const granted = resultOf<Granted>(await outcomeUnless(signalOf(options), () => lock.acquire()))
    return new Held(lock.name, this, granted)
  }

  /**
   * Marks the servers of a quorum as trusted, so that they vote at once instead of after `maxTtlMs`. Only for servers that are
   * new, and only while no lock of this quorum may be held anywhere. Does nothing with one server.
   */
  async initializeQuorum(): Promise<void> {
    resultOf(await outcome(this.#native.initializeQuorum()))
  }

  /** What each server really guarantees: version, role, persistence, eviction, clock, rights, and what is worth a warning. */
  async report(): Promise<ServerReport[]> {
    return resultOf(await outcome(this.#native.report()))
  }

  /**
   * Closes the client: acquires under way reject with `ClosedError`, held locks are lost (reason `closed`) and given back, then
   * connections are let go. Takes at most a response timeout or so.
   */
  async close(): Promise<void> {
    resultOf(await outcome(this.#native.close()))
  }

  /** Closes the client. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #hear(): void {
    if (diagnostics.hasSubscribers) this.#native.hear()
  }
}

/** Sorts out `(options, body)` and `(body)`. @internal */
export function bodyOf<T>(options: WithLockOptions | Body<T> | undefined, body: Body<T> | undefined): [WithLockOptions | undefined, Body<T>] {
  const [own, run] = typeof options === 'function' && body === undefined ? [undefined, options] : [options, body]
  if (typeof run !== 'function') throw InvalidArgumentError.of('body', run, 'must be a function')
  return [own as WithLockOptions | undefined, run]
}
