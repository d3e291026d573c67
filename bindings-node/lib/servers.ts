import type * as native from '../native/index.js'
import { text } from './checks.js'
import { InvalidArgumentError, type ServerFailure } from './errors.js'
import { workersOwn, type ClientOptions } from './options.js'
import { ScriptedServer } from './scripted.js'

/** A URL, several in one string, or a scripted server. */
export type ServerSource = string | URL | ScriptedServer

/** The servers and the options of a client; either may be omitted. @internal */
export function serversAnd(
  servers: ServerSource | readonly ServerSource[] | ClientOptions | undefined,
  options: ClientOptions | undefined,
): [Array<string | native.ScriptedServer>, ClientOptions | undefined] {
  if (options === undefined && isOptions(servers)) return [listed(undefined), servers]
  return [listed(servers as ServerSource | readonly ServerSource[] | undefined), options]
}

/** The servers in order. Without servers, a worker's own environment names them. The core reads the process's environment. */
function listed(servers: ServerSource | readonly ServerSource[] | undefined): Array<string | native.ScriptedServer> {
  if (servers === undefined) return workersOwn('LOCKTENDER_URL')
  const list = Array.isArray(servers) ? (servers as readonly ServerSource[]) : [servers as ServerSource]
  if (list.length === 0) throw InvalidArgumentError.of('url', servers, 'an empty list names no server')
  return list.map(source)
}

function source(server: unknown): string | native.ScriptedServer {
  if (server instanceof ScriptedServer) return ScriptedServer.nativeOf(server)
  if (isUrl(server)) return server.href
  // Never the value itself: it may contain a password.
  if (typeof server !== 'string') throw refused(server)
  return text('url', server)
}

/** An object that is no server: the options, which a caller gives first when the environment names the servers. */
function isOptions(value: unknown): value is ClientOptions {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return !(value instanceof ScriptedServer) && !isUrl(value) && clientOf(value) === undefined
}

/** Recognizes options by their shape: a test environment has its own classes. */
function isUrl(value: unknown): value is URL {
  return typeof value === 'object' && value !== null && 'searchParams' in value && 'href' in value && typeof value.href === 'string'
}

function refused(server: unknown): InvalidArgumentError {
  const peer = clientOf(server)
  if (peer) return InvalidArgumentError.of('url', peer, advice[peer])
  return InvalidArgumentError.of('url', typeof server, 'must be a URL, a scripted server, or an array of them; options alone are one object')
}

type Peer = 'a client of ioredis' | 'a client of node-redis'

const advice: Record<Peer, string> = {
  'a client of ioredis': 'a client is made of it by Client.fromIoredis(redis)',
  'a client of node-redis': "its settings can't be copied; give its URL, such as new Client('redis://localhost')",
}

/** The name of the library that this client belongs to, if any. @internal */
export function clientOf(value: unknown): Peer | undefined {
  if (typeof value !== 'object' || value === null || !('sendCommand' in value)) return undefined
  return 'isCluster' in value || 'status' in value ? 'a client of ioredis' : 'a client of node-redis'
}

/** The report on one server: what it can guarantee. */
export interface ServerReport {
  /** The server's address, without credentials. */
  readonly server: string
  /** The reason why it didn't answer; the rest is then `null`. */
  readonly failure: ServerFailure | null
  /** The product and its version. */
  readonly version: string | null
  /** `master` or `slave`, as the server calls itself. */
  readonly role: string | null
  /** `aof`, `rdb` or `none`. */
  readonly persistence: string | null
  /** The eviction policy; any other than `noeviction` may evict a lock. */
  readonly eviction: string | null
  /** The time by which its clock is ahead of this machine's; negative if it is slow. */
  readonly clockOffsetMs: number | null
  /** The rights that locks need and this client's user lacks, one line each; `null` if they are unknown. */
  readonly denied: readonly string[] | null
  /** What needs attention, one sentence each. */
  readonly warnings: readonly string[]
}
