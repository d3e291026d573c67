// Server: a real server as a value.

import { randomInt } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { once } from 'node:events'
import os from 'node:os'
import path from 'node:path'

import { Redis } from 'ioredis'

import { binary, prepared, root } from './checkout.mjs'
import { PATIENCE_MS } from './observe.mjs'
import { Program, Tether } from './program.mjs'

/** How much higher the port of a cluster's bus is: all versions do it so by default. */
export const BUS = 10_000

/** The owner value of a hold, without what the scripts write behind it. */
export function ownerOf(value) {
  return value?.replace(/( id=[0-9a-f-]{36}) .*/, '$1') ?? null
}

/**
 * A server of its own process, gone when closed and when the test process dies. It keeps no process alive.
 *
 * Options:
 *   version     its name in .venv/servers.json, such as 'redis-6.2'
 *   password    the default user's
 *   users       more users, { name: [password, rules of ACL SETUSER] }
 *   tls         the certificate shown on the port: 'server', 'elsewhere' or 'expired'. While the server is killed a
 *               connection to the port is then closed, not refused.
 *   mutual      only clients that show a certificate such as 'client'
 *   persistent  data is on disk after every write, so that restart() finds it again
 *   sentinel    it is a sentinel in place of a server; its configuration says what it watches
 *   cluster     it is a node of a cluster, one without slots that knows no other (Cluster in cluster.mjs)
 *   config      more lines for the configuration file
 */
export class RealServer {
  #options
  #port = 0
  #tether
  #terminator

  static async start(options = {}) {
    const server = new RealServer()
    server.#options = options
    server.binary = binary(options.version)
    server.password = options.password
    // Short, because a path of a unix socket is at most 107 bytes.
    server.directory = await mkdtemp(path.join(os.tmpdir(), 'locktender-'))
    await server.#run()
    if (options.tls) {
      const command = [prepared('bin/python'), path.join(root, 'tests/terminator.py'), server.#port, options.tls]
      server.#terminator = await Program.start(...command, ...(options.mutual ? ['mutual'] : []))
    }
    return server
  }

  get #configuration() {
    const { password, users = {}, persistent, sentinel, cluster, config = [] } = this.#options
    const data = persistent ? ['appendonly yes', 'appendfsync always'] : ['save ""', 'appendonly no']
    return [
      `dir ${this.directory}`,
      'bind 127.0.0.1',
      `port ${this.#port}`,
      `unixsocket ${this.socket}`,
      ...(sentinel ? [] : data),
      ...(cluster ? ['cluster-enabled yes'] : []),
      ...(password ? [`requirepass ${password}`] : []),
      ...Object.entries(users).map(([name, [secret, rules]]) => `user ${name} on >${secret} ${rules}`),
      ...config,
    ].join('\n') + '\n'
  }

  /** Runs the server, on a port of its own choice the first time, later on the same. */
  async #run() {
    const chosen = this.#port !== 0
    for (;;) {
      if (!chosen) this.#port = await (this.#options.cluster ? freePorts() : freePort())
      await mkdir(this.directory, { recursive: true })
      const file = path.join(this.directory, 'server.conf')
      await writeFile(file, this.#configuration)
      this.#tether = await Tether.start(this.directory, this.binary.path, file, ...(this.#options.sentinel ? ['--sentinel'] : []))
      if (await this.#becomesReady()) return
      const log = await readFile(path.join(this.directory, 'log'), 'utf8')
      await this.close()
      // Somebody took the free port before the server did: the one case for another try.
      if (chosen || !log.includes('Address already in use')) {
        throw new Error(`${this.binary.name} did not start:\n${log}`)
      }
    }
  }

  async #becomesReady() {
    const deadline = Date.now() + PATIENCE_MS
    // It listens on the port before it answers on the socket, which nobody else can have.
    while (Date.now() < deadline && !this.#tether.ended) {
      if (await this.command('PING').then((reply) => reply === 'PONG', () => false)) return true
      await sleep(2)
    }
    return false
  }

  /** The port on 127.0.0.1; it stays the same over restarts. */
  get port() {
    return this.#terminator?.number ?? this.#port
  }

  /** The port on which it speaks without TLS. */
  get ownPort() {
    return this.#port
  }

  /** Whether there is a process, which may be paused. */
  get isRunning() {
    return this.#tether !== undefined
  }

  get pid() {
    return this.#running.pid
  }

  /** The URL of its port, with the password if it needs one. */
  get url() {
    return this.urlAt(this.port)
  }

  /** The same URL with another port, such as a proxy's. */
  urlAt(port) {
    return `${this.#terminator ? 'rediss' : 'redis'}://${this.password ? `:${this.password}@` : ''}127.0.0.1:${port}`
  }

  /** The path of its unix socket. */
  get socket() {
    return path.join(this.directory, 'socket')
  }

  get unixUrl() {
    return `unix://${this.socket}${this.password ? `?pass=${this.password}` : ''}`
  }

  /** The owner in the value of a lock's key. */
  async holder(key) {
    return ownerOf(await this.command('GET', key))
  }

  /** Asks the server directly: see `ask`. */
  command(name, ...words) {
    return ask({ path: this.socket, password: this.password }, name, ...words)
  }

  /** Who stands in line for the lock of this name. */
  line(name) {
    return this.command('ZRANGEBYSCORE', `{${name}}:~lt:queue`, '0', '+inf')
  }

  /** Kills the server, as a crash would. */
  async kill() {
    await this.#running.kill()
    this.#tether = undefined
  }

  /** Stops the process: connections stay open and nothing answers. */
  pause() {
    this.#running.pause()
  }

  /** Lets a paused server go on. */
  resume() {
    this.#running.resume()
  }

  /** Kills the server, if it runs, and starts it on the same port with the data it kept on disk. */
  async restart() {
    if (this.#tether) await this.kill()
    await this.#run()
  }

  /** Kills the server, if it runs, and starts it on the same port without any data. */
  async restartEmpty() {
    if (this.#tether) await this.kill()
    await rm(this.directory, { recursive: true })
    await this.#run()
  }

  get #running() {
    if (!this.#tether) throw new Error('the server is killed')
    return this.#tether
  }

  async close() {
    await this.#terminator?.close()
    await this.#tether?.close()
    this.#terminator = this.#tether = undefined
    // The tether has removed it already unless the server was killed before.
    await rm(this.directory, { recursive: true, force: true })
  }
}

/** Asks a server directly, past the library under test: RESP2 replies, rejected with an error reply. */
export async function ask(place, name, ...words) {
  const patience = { connectTimeout: PATIENCE_MS, commandTimeout: PATIENCE_MS, retryStrategy: null, lazyConnect: true }
  const client = new Redis({ ...place, protocol: 2, ...patience })
  client.on('error', () => {}) // told by the rejection too
  try {
    await client.connect()
    return await client.call(name, ...words)
  } finally {
    client.disconnect()
  }
}

/** Starts a server that is closed with the test `t`. */
export async function startServer(t, options) {
  const server = await RealServer.start(options)
  t.after(() => server.close())
  return server
}

let shared

/** The server that the tests of one file share: use a name of your own for every key. */
export function sharedServer() {
  return (shared ??= RealServer.start())
}

/** A port that was free a moment ago. */
async function freePort() {
  const probe = await listen(0)
  const { port } = probe.address()
  await closed(probe)
  return port
}

/**
 * A port that was free a moment ago, and that of the bus, too. Both lie below those that a system gives to whoever asks for any: so
 * nobody takes them while a node is killed.
 */
async function freePorts() {
  for (;;) {
    const port = randomInt(11_000, 21_000)
    const probes = await Promise.allSettled([port, port + BUS].map(listen))
    const open = probes.filter(({ value }) => value)
    for (const { value } of open) await closed(value)
    if (open.length === 2) return port
  }
}

async function listen(port) {
  const probe = createServer().listen(port, '127.0.0.1')
  await once(probe, 'listening')
  return probe
}

async function closed(probe) {
  probe.close()
  await once(probe, 'close')
}
