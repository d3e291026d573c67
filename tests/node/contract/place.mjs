// Places: the servers on which cases are played.

import { once } from 'node:events'
import net from 'node:net'

import { Client } from 'locktender'
import { ScriptedServer } from 'locktender/testing'

import { Cluster } from '../support/cluster.mjs'
import { ask, RealServer } from '../support/server.mjs'

/** The places of a case's `at`. */
export function placesOf(at = 'any') {
  const chosen = (process.env.LOCKTENDER_CONTRACT_PLACES ?? 'memory,redis,quorum').split(',')
  if (at === 'redis') return [at, ...chosen.filter((name) => name === 'cluster')]
  if (at === 'one_server') return chosen.filter((name) => name !== 'quorum')
  return at === 'any' ? chosen : [at].filter((name) => name !== 'unix' || process.platform !== 'win32')
}

/** The commands without a key, which every node of a cluster is asked. */
const KEYLESS = ['KEYS', 'SCRIPT']

/** How long clients wait for an answer, where there is one: an attempt that isn't repeated may meet a stalled machine. */
const patience = { responseTimeoutMs: 5_000, connectTimeoutMs: 5_000 }

/** The servers of the places, and what is particular about them. */
const SERVERS = {
  plain: {},
  guarded: { password: 'secret', users: { guest: ['guest', '~* +@connection +get'] } },
  sentinel: { sentinel: true },
  tls: { tls: 'server' },
  elsewhere: { tls: 'elsewhere' },
  first: {},
  second: {},
  third: {},
}

/** A server that servers.mjs has started on another system. */
class GivenServer {
  constructor(given) {
    Object.assign(this, given)
  }

  command(name, ...words) {
    return ask({ port: this.ownPort, password: this.password }, name, ...words)
  }

  close() {}
}

const given = JSON.parse(process.env.LOCKTENDER_CONTRACT_SERVERS ?? '{}')

/** Makes places: `{ name, urls, servers, patience, cluster }`. What they need is started when it is first asked for, and closed with `close`. */
export class Places {
  #started = new Map()
  #listeners = []
  #three
  #count = 0

  async make(at) {
    if (at.scripted) {
      const scripted = new ScriptedServer(at.scripted.join('\n'))
      return { name: 'scripted', urls: [scripted], servers: [], scripted }
    }
    if (typeof at === 'object') return { name: 'urls', urls: at.urls, servers: [] }
    return { name: at, servers: [], patience: at === 'silent' ? {} : patience, ...(await this.#parts[at]()) }
  }

  #start(name, options) {
    if (!this.#started.has(name)) {
      this.#started.set(name, given[name] ? new GivenServer(given[name]) : RealServer.start({ ...SERVERS[name], ...options }))
    }
    return this.#started.get(name)
  }

  #plain = () => this.#start('plain')
  #guarded = () => this.#start('guarded')
  #sentinel = async () => {
    const { port } = await this.#plain()
    return this.#start('sentinel', { config: [`sentinel monitor main 127.0.0.1 ${port} 1`] })
  }
  #tls = () => this.#start('tls')
  #cluster = () => this.#startCluster('cluster', 3)
  #oneNode = () => this.#startCluster('one_node', 1)
  #quorum = () => (this.#three ??= this.#startQuorum())
  #elsewhere = () => this.#start('elsewhere')

  /** Starts all servers, for places on another system. */
  async all() {
    await this.#sentinel()
    const servers = Object.keys(SERVERS).map(async (name) => [name, await this.#start(name)])
    const told = ([name, { url, port, ownPort, password }]) => [name, { url, port, ownPort, password }]
    return Object.fromEntries((await Promise.all(servers)).map(told))
  }

  #parts = {
    memory: () => ({ urls: [`memory://contract-${this.#count++}`] }),
    redis: async () => reached(await this.#plain()),
    sentinel: async () => {
      const [{ port }, plain] = [await this.#sentinel(), await this.#plain()]
      return { urls: [`redis+sentinel://127.0.0.1:${port}/main`], servers: [plain] }
    },
    cluster: async () => {
      const cluster = await this.#cluster()
      return { urls: [cluster.url], servers: cluster.nodes, cluster }
    },
    one_node: async () => reached((await this.#oneNode()).nodes[0]),
    quorum: async () => {
      const servers = await this.#quorum()
      return { urls: servers.map(({ url }) => url), servers }
    },
    unix: async () => ({ urls: [(await this.#plain()).unixUrl], servers: [await this.#plain()] }),
    password: async () => reached(await this.#guarded()),
    wrong_password: async () => local('redis', (await this.#guarded()).port, ':hunter2@'),
    no_password: async () => local('redis', (await this.#guarded()).port),
    no_rights: async () => local('redis', (await this.#guarded()).port, 'guest:guest@'),
    tls: async () => reached(await this.#tls()),
    tls_elsewhere: async () => ({ urls: [(await this.#elsewhere()).url] }),
    tls_as_clear: async () => local('redis', (await this.#tls()).port),
    no_database: async () => ({ urls: [`${(await this.#plain()).url}/99`] }),
    clear_as_tls: async () => local('rediss', (await this.#plain()).port),
    // Reserved for a service that nobody runs.
    refused: () => local('redis', 1),
    not_redis: async () => local('redis', await this.#listen((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))),
    silent: async () => local('redis', await this.#listen(() => {})),
  }

  #startCluster(name, primaries) {
    if (!this.#started.has(name)) this.#started.set(name, Cluster.start({ primaries }))
    return this.#started.get(name)
  }

  async #startQuorum() {
    const servers = await Promise.all(['first', 'second', 'third'].map((name) => this.#start(name)))
    const client = new Client(servers.map(({ url }) => url), patience)
    await client.initializeQuorum()
    await client.close()
    return servers
  }

  async #listen(serve) {
    const sockets = new Set()
    const listener = net.createServer((socket) => {
      sockets.add(socket.on('error', () => {}))
      socket.once('data', () => serve(socket))
    })
    this.#listeners.push([listener, sockets])
    await once(listener.listen(0, '127.0.0.1'), 'listening')
    return listener.address().port
  }

  async close() {
    for (const [listener, sockets] of this.#listeners) {
      listener.close()
      for (const socket of sockets) socket.destroy()
    }
    for (const server of this.#started.values()) await (await server).close()
  }
}

/** What each of a place's servers says that have to do with a command: in a cluster the one that serves its key. */
export async function repliesOf({ servers, cluster }, name, ...words) {
  if (cluster && !KEYLESS.includes(name)) return [await cluster.command(words[0], name, ...words)]
  const replies = []
  for (const server of servers) replies.push(await server.command(name, ...words))
  return replies
}

/** What all servers of a place say together. In a cluster each has a part of a list; elsewhere they should not differ. */
export async function replyOf(place, ...words) {
  const replies = await repliesOf(place, ...words)
  return place.cluster && Array.isArray(replies[0]) ? replies.flat() : replies.at(-1)
}

function reached(server) {
  return { urls: [server.url], servers: [server] }
}

function local(scheme, port, login = '') {
  return { urls: [`${scheme}://${login}127.0.0.1:${port}`] }
}
