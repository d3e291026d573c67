import { InvalidArgumentError } from './errors.js'
import type { ClientOptions } from './options.js'
import { clientOf } from './servers.js'

/** The part of an ioredis client, or of its `Cluster`, that is read: its options. */
export interface IoredisLike {
  readonly options: {
    readonly host?: string | undefined
    readonly port?: number | undefined
    readonly path?: string | null | undefined
    readonly username?: string | null | undefined
    readonly password?: string | null | undefined
    readonly db?: number | undefined
    readonly tls?: object | undefined
    readonly sentinels?: readonly { readonly host?: string | undefined; readonly port?: number | undefined }[] | null | undefined
    readonly name?: string | undefined
    readonly role?: string | undefined
    readonly sentinelUsername?: string | null | undefined
    readonly sentinelPassword?: string | null | undefined
    readonly sentinelTLS?: object | undefined
    readonly enableTLSForSentinelMode?: boolean | undefined
    readonly natMap?: unknown
    readonly keyPrefix?: string | undefined
    readonly redisOptions?: object | undefined
    readonly useSRVRecords?: boolean | undefined
  }
  readonly isCluster?: boolean | undefined
}

/** The URL and the options of the server that an ioredis client uses. @internal */
export function ofIoredis(redis: unknown, options: ClientOptions): [string, ClientOptions] {
  const given = optionsOf(redis)
  const { tls, keyPrefix } = given
  const own = { ...(keyPrefix ? { prefix: keyPrefix } : {}), ...tlsName(given) }
  const nodes = startupNodesOf(redis)
  if (nodes) return [clusterUrl(given, nodes, options), { ...own, ...addressMap(given, options), ...options }]
  if (given.sentinels?.length) return [sentinelUrl(given, given.sentinels, options), { ...own, ...addressMap(given, options), ...options }]
  if (tls) checkTls(tls, options)
  return [given.path ? socketUrl(given, given.path) : hostUrl(given), { ...own, ...options }]
}

function optionsOf(redis: unknown): IoredisLike['options'] {
  if (typeof redis !== 'object' || redis === null) throw refused(typeof redis, 'must be an ioredis client')
  if (clientOf(redis) === 'a client of node-redis') throw refused('a client of node-redis', 'must be an ioredis client; of that one give the URL to new Client(url)')
  const { options, isCluster } = redis as Partial<IoredisLike>
  if (typeof options !== 'object') throw refused('no options', 'must be an ioredis client')
  // A cluster has the options of its connections apart from its own.
  return isCluster ? { ...options.redisOptions, ...options } : options
}

/** A node that a `Cluster` was given: a URL, a port or options. */
type StartupNode = string | number | IoredisLike['options']

/** The nodes that a `Cluster` was given; `undefined` for a client of one server. */
function startupNodesOf(redis: unknown): readonly StartupNode[] | undefined {
  const { isCluster, startupNodes = [] } = redis as { isCluster?: boolean; startupNodes?: readonly StartupNode[] }
  return isCluster ? startupNodes : undefined
}

function clusterUrl(given: IoredisLike['options'], nodes: readonly StartupNode[], options: ClientOptions): string {
  if (given.useSRVRecords) throw refused('useSRVRecords', 'names of SRV records are not resolved here: give new Client(url) the hosts of some nodes')
  const read = nodes.map(startupNode)
  const [first] = read
  if (!first) throw refused('a Cluster without nodes', 'give it the host of a node')
  const tls = given.tls ?? first.tls
  if (tls) checkTls(tls, options)
  const login = credentials(given.username || given.password ? given : first)
  const hosts = new Set(read.map(({ host = '127.0.0.1', port = 6379 }) => place(host, Number(port))))
  return `${tls ? 'rediss' : 'redis'}+cluster://${login}${[...hosts].join(',')}`
}

/** The options of a node, which may be a URL, such as `host:port`, or a port. */
function startupNode(node: StartupNode): IoredisLike['options'] {
  if (typeof node === 'number') return { port: node }
  if (typeof node !== 'string') return node
  if (/^\d+$/.test(node)) return { port: Number(node) }
  const text = node.includes('://') ? node : `redis://${node}`
  // The error of URL itself shows all of it.
  if (!URL.canParse(text)) throw refused('a node', 'each is a URL, a port, or an object with host and port')
  const url = new URL(text)
  const [username, password] = [url.username, url.password].map(decodeURIComponent)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return { host, port: Number(url.port || 6379), username, password, ...(url.protocol === 'rediss:' ? { tls: {} } : {}) }
}

function hostUrl({ host = 'localhost', port = 6379, db = 0, tls, ...given }: IoredisLike['options']): string {
  return `${tls ? 'rediss' : 'redis'}://${credentials(given)}${place(host, port)}/${db}`
}

function place(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

type Sentinels = NonNullable<IoredisLike['options']['sentinels']>

function sentinelUrl(given: IoredisLike['options'], sentinels: Sentinels, options: ClientOptions): string {
  const { name, role, sentinelTLS, sentinelUsername, sentinelPassword, db = 0 } = given
  if (!name) throw refused('sentinels', 'a service needs its name: the option name of ioredis')
  if (role === 'slave') throw refused('role: slave', 'locks are on the primary')
  // Without this option ioredis speaks no TLS to a primary that sentinels name.
  const tls = given.enableTLSForSentinelMode ? given.tls : undefined
  for (const each of [tls, sentinelTLS]) if (each) checkTls(each, options)
  const hosts = new Set(sentinels.map(({ host = 'localhost', port = 26_379 }) => place(host, port)))
  const query = new URLSearchParams({
    sentinel_tls: sentinelTLS ? 'yes' : 'no',
    ...(sentinelUsername ? { sentinel_user: sentinelUsername } : {}),
    ...(sentinelUsername || sentinelPassword ? { sentinel_password: sentinelPassword ?? '' } : {}),
  })
  const scheme = tls ? 'rediss+sentinel' : 'redis+sentinel'
  return `${scheme}://${credentials(given)}${[...hosts].join(',')}/${encodeURIComponent(name)}/${db}?${query}`
}

function socketUrl({ username, password, db = 0 }: IoredisLike['options'], path: string): string {
  const query = new URLSearchParams({ db: String(db), ...(username ? { user: username } : {}), ...(password ? { pass: password } : {}) })
  return `unix://${path}?${query}`
}

function credentials({ username, password }: IoredisLike['options']): string {
  return username || password ? `${encodeURIComponent(username ?? '')}:${encodeURIComponent(password ?? '')}@` : ''
}

/** The name in the place of the host's, of a server with TLS. The sentinels' must be the same: a client here has one for all. */
function tlsName({ tls, sentinels, sentinelTLS, enableTLSForSentinelMode }: IoredisLike['options']): ClientOptions {
  const all = sentinels?.length ? [enableTLSForSentinelMode ? tls : undefined, sentinelTLS] : [tls]
  const names = new Set(all.filter((each) => each !== undefined).map((each) => (each as { servername?: string }).servername))
  if (names.size > 1) throw refused('tls.servername', 'the sentinels have another one, and a client here has one for all')
  const [tlsName] = names
  return tlsName === undefined ? {} : { tlsName }
}

/** The addresses of a `natMap`, unless the caller gives others. One that is a function can't be copied. */
function addressMap({ natMap }: IoredisLike['options'], options: ClientOptions): ClientOptions {
  if (!natMap || options.addressMap) return {}
  if (typeof natMap !== 'object') throw refused('natMap', 'a function can\'t be copied: give addressMap, an object of addresses')
  const pairs = Object.entries(natMap as Record<string, { host: string; port: number }>)
  return { addressMap: Object.fromEntries(pairs.map(([announced, { host, port }]) => [announced, place(host, port)])) }
}

/** Certificates are texts in ioredis and files here: a user with own certificates must name their files. */
function checkTls(tls: object, options: ClientOptions): void {
  const { ca, cert, key, rejectUnauthorized } = tls as Record<string, unknown>
  if (rejectUnauthorized === false) throw refused('tls.rejectUnauthorized: false', 'certificates are always checked; tlsCa says against what')
  const missing = [ca && !options.tlsCa && 'tlsCa', cert && !options.tlsCert && 'tlsCert', key && !options.tlsKey && 'tlsKey'].filter(Boolean)
  if (missing.length > 0) throw refused('tls with certificates', `its certificates are texts; name the files in ${missing.join(', ')}`)
}

// Never the options themselves: they contain the password.
function refused(given: string, why: string): InvalidArgumentError {
  return InvalidArgumentError.of('redis', given, why)
}
