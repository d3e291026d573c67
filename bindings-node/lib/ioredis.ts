import { InvalidArgumentError } from './errors.js'
import type { ClientOptions } from './options.js'
import { clientOf } from './servers.js'

/** The part of an ioredis client that is read: its options. */
export interface IoredisLike {
  readonly options: {
    readonly host?: string | undefined
    readonly port?: number | undefined
    readonly path?: string | null | undefined
    readonly username?: string | null | undefined
    readonly password?: string | null | undefined
    readonly db?: number | undefined
    readonly tls?: object | undefined
    readonly sentinels?: readonly unknown[] | null | undefined
    readonly keyPrefix?: string | undefined
  }
  readonly isCluster?: boolean | undefined
}

/** The URL and the options of the server that an ioredis client uses. @internal */
export function ofIoredis(redis: unknown, options: ClientOptions): [string, ClientOptions] {
  const given = optionsOf(redis)
  const { tls, keyPrefix } = given
  if (tls) checkTls(tls, given.host ?? 'localhost', options)
  const prefix = keyPrefix ? { prefix: keyPrefix } : {}
  return [given.path ? socketUrl(given, given.path) : hostUrl(given), { ...prefix, ...options }]
}

function optionsOf(redis: unknown): IoredisLike['options'] {
  if (typeof redis !== 'object' || redis === null) throw refused(typeof redis, 'must be an ioredis client')
  if (clientOf(redis) === 'a client of node-redis') throw refused('a client of node-redis', 'must be an ioredis client; of that one give the URL to new Client(url)')
  const { options, isCluster } = redis as Partial<IoredisLike>
  if (isCluster) throw refused('a Cluster', 'a lock needs one server, or several that are independent of each other')
  if (typeof options !== 'object') throw refused('no options', 'must be an ioredis client')
  if (options.sentinels?.length) throw refused('sentinels', "a client that finds its server by sentinels can't be copied; give the server's URL")
  return options
}

function hostUrl({ host = 'localhost', port = 6379, db = 0, tls, ...given }: IoredisLike['options']): string {
  return `${tls ? 'rediss' : 'redis'}://${credentials(given)}${host.includes(':') ? `[${host}]` : host}:${port}/${db}`
}

function socketUrl({ username, password, db = 0 }: IoredisLike['options'], path: string): string {
  const query = new URLSearchParams({ db: String(db), ...(username ? { user: username } : {}), ...(password ? { pass: password } : {}) })
  return `unix://${path}?${query}`
}

function credentials({ username, password }: IoredisLike['options']): string {
  return username || password ? `${encodeURIComponent(username ?? '')}:${encodeURIComponent(password ?? '')}@` : ''
}

/** Certificates are texts in ioredis and files here: a user with own certificates must name their files. */
function checkTls(tls: object, host: string, options: ClientOptions): void {
  const { ca, cert, key, rejectUnauthorized, servername } = tls as Record<string, unknown>
  if (rejectUnauthorized === false) throw refused('tls.rejectUnauthorized: false', 'certificates are always checked; tlsCa says against what')
  if (servername !== undefined && servername !== host) throw refused('tls.servername', "the certificate has to be the host's")
  const missing = [ca && !options.tlsCa && 'tlsCa', cert && !options.tlsCert && 'tlsCert', key && !options.tlsKey && 'tlsKey'].filter(Boolean)
  if (missing.length > 0) throw refused('tls with certificates', `its certificates are texts; name the files in ${missing.join(', ')}`)
}

// Never the options themselves: they contain the password.
function refused(given: string, why: string): InvalidArgumentError {
  return InvalidArgumentError.of('redis', given, why)
}
