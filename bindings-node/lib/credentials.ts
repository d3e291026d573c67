import { credentialsOptions } from './options.js'

/** A user and a password for a server, and how long they are good: what `credentials` of a client may give. */
export interface Credentials {
  /** The user. Default: the server's default user. */
  user?: string | undefined
  /** The password, or a token. */
  password: string
  /**
   * The time for which they are good from now on, in milliseconds. When two thirds of it are over, the next ones are asked for; less
   * than a second counts as a second. Default unknown: they are asked for again after 5 minutes.
   */
  expiresInMs?: number | undefined
}

/** Gives the credentials for the server at an address, which has none in it: a password, or `Credentials`. */
export type CredentialsProvider = (server: string) => Credentials | string | PromiseLike<Credentials | string>

const providers = new WeakMap<object, CredentialsProvider>()

/** Has `provider` asked for the credentials of a client, as long as that lives. @internal */
export function provide(client: object, provider: CredentialsProvider): void {
  providers.set(client, provider)
}

/** What the provider of a client gives for a server. @internal */
export async function credentialsOf(client: object | undefined, server: string): Promise<Credentials> {
  const provider = client && providers.get(client)
  if (!provider) throw new Error('the client is gone')
  const given: unknown = await provider(server)
  return typeof given === 'string' ? { password: given } : credentialsOptions(given)
}
