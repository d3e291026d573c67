import { bodyOf, Client, type Body, type Ran, type WithLockOptions } from './client.js'
import { Lock } from './lock.js'
import { lockOptions, text, type ClientOptions, type LockOptions } from './options.js'
import type { Server } from './servers.js'
import { onBehalfOf, suspect } from './suspicions.js'

let client: Client | undefined

function defaultClient(): Client {
  return (client ??= new Client())
}

/**
 * Sets the servers and options of the default client, which `lock`, `withLock` and `tryWithLock` use, and returns that client.
 * Otherwise the default client is made at the first operation, with the servers that the environment's `LOCKTENDER_URL` names.
 * Locks that were used before keep their client.
 */
export function configure(servers: Server | readonly Server[], options?: ClientOptions): Client
/** Sets the options of the default client, whose servers the environment's `LOCKTENDER_URL` names, and returns that client. */
export function configure(options: ClientOptions): Client
export function configure(servers: Server | readonly Server[] | ClientOptions, options?: ClientOptions): Client {
  return (client = onBehalfOf(configure, () => new Client(servers as Server | readonly Server[], options)))
}

/** The lock `name` of the default client. No I/O, and no client before its first operation. */
export function lock(name: string, options?: LockOptions): Lock {
  const own = lockOptions(options)
  suspect(undefined, text('name', name), own, lock)
  return new Lock(name, () => Client.makeLock(defaultClient(), name, own))
}

/** `withLock` of the default client. */
export function withLock<T>(name: string, body: Body<T>): Promise<T>
export function withLock<T>(name: string, options: WithLockOptions | undefined, body: Body<T>): Promise<T>
export async function withLock<T>(name: string, options: WithLockOptions | Body<T> | undefined, body?: Body<T>): Promise<T> {
  const [own, run] = bodyOf(options, body)
  return await onBehalfOf(withLock, () => defaultClient().withLock(name, own, run))
}

/** `tryWithLock` of the default client. */
export function tryWithLock<T>(name: string, body: Body<T>): Promise<Ran<T>>
export function tryWithLock<T>(name: string, options: WithLockOptions | undefined, body: Body<T>): Promise<Ran<T>>
export async function tryWithLock<T>(name: string, options: WithLockOptions | Body<T> | undefined, body?: Body<T>): Promise<Ran<T>> {
  const [own, run] = bodyOf(options, body)
  return await onBehalfOf(tryWithLock, () => defaultClient().tryWithLock(name, own, run))
}
