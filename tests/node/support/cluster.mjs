// Cluster: some servers that share the slots of a cluster, made by plain commands.

import { PATIENCE_MS, until } from './observe.mjs'
import { BUS, RealServer } from './server.mjs'

export const SLOTS = 16_384

/** A few small keys fit into one command. */
const AT_A_TIME = 500

/**
 * The nodes: the first primaries, then the replicas of the first one, of the second one, …
 *
 * Options:
 *   primaries, replicas  how many have slots (3), and how many replicas each of these has (0)
 *   fullCoverage         a slot that nobody serves stops the whole cluster, as it does by default in production
 *   and those of RealServer, for each node. With TLS, clients are told the port that speaks it, and replicas can't follow.
 */
export class Cluster {
  #ids = new Map()

  static async start({ primaries = 3, replicas = 0, fullCoverage = false, config = [], ...options } = {}) {
    const cluster = new Cluster()
    const lines = ['cluster-node-timeout 1500', 'repl-diskless-sync-delay 0', ...config]
    lines.push(`cluster-require-full-coverage ${fullCoverage ? 'yes' : 'no'}`)
    if (options.password) lines.push(`masterauth ${options.password}`)
    cluster.password = options.password
    cluster.nodes = []
    try {
      for (let index = 0; index < primaries * (1 + replicas); index++) {
        cluster.nodes.push(await RealServer.start({ ...options, config: lines, cluster: true }))
      }
      await cluster.#form(primaries, replicas)
    } catch (error) {
      await cluster.close()
      throw error
    }
    return cluster
  }

  async #form(primaries, replicas) {
    const { nodes } = this
    for (const [index, node] of nodes.entries()) {
      this.#ids.set(await node.command('CLUSTER', 'MYID'), node)
      // Else equal ones collide, and nodes take a while to settle that.
      await node.command('CLUSTER', 'SET-CONFIG-EPOCH', index + 1)
      if (node.port !== node.ownPort) await node.command('CONFIG', 'SET', 'cluster-announce-port', node.port)
      // Each meets each: they needn't wait for what others tell of them.
      for (const other of nodes.slice(0, index)) {
        await node.command('CLUSTER', 'MEET', '127.0.0.1', other.ownPort, other.ownPort + BUS)
      }
    }
    const first = (index) => Math.floor((index * SLOTS) / primaries)
    for (const [index, node] of nodes.slice(0, primaries).entries()) {
      const slots = Array.from({ length: first(index + 1) - first(index) }, (_, more) => first(index) + more)
      await node.command('CLUSTER', 'ADDSLOTS', ...slots)
    }
    await every(nodes, async (node) => (await info(node, 'cluster_known_nodes')) === String(nodes.length))
    for (const [index, replica] of nodes.slice(primaries).entries()) {
      const primary = this.#id(nodes[Math.floor(index / replicas)])
      // It must know the other as a primary with slots before.
      await until(() => replica.command('CLUSTER', 'REPLICATE', primary).catch(() => null), PATIENCE_MS)
    }
    await every(nodes.slice(primaries), async (replica) => (await replica.command('INFO', 'replication')).includes('master_link_status:up'))
    await every(nodes, (node) => this.#isReady(node, primaries))
  }

  async #isReady(node, primaries) {
    const known = (await served(node)).reduce((sum, { ids }) => sum + ids.length, 0)
    const wanted = { cluster_state: 'ok', cluster_slots_ok: String(SLOTS), cluster_size: String(primaries) }
    for (const [field, value] of Object.entries(wanted)) {
      if ((await info(node, field)) !== value) return false
    }
    return known === this.nodes.length
  }

  get hosts() {
    return this.nodes.map(({ port }) => ({ host: '127.0.0.1', port }))
  }

  /** The URL with the ports of all nodes, and the password if they need one. */
  get url() {
    const [{ port, ownPort }] = this.nodes
    const hosts = this.hosts.map(({ host, port }) => `${host}:${port}`)
    return `${port === ownPort ? 'redis' : 'rediss'}+cluster://${this.password ? `:${this.password}@` : ''}${hosts}`
  }

  slot(key) {
    return this.#running[0].command('CLUSTER', 'KEYSLOT', key)
  }

  /** The node that serves a slot, as the first running node knows it. */
  async primary(slot) {
    const node = await this.#primaryFor(this.#running[0], slot)
    if (!node) throw new Error(`nobody serves the slot ${slot}`)
    return node
  }

  /** The node that serves a key. */
  async at(key) {
    return this.primary(await this.slot(key))
  }

  /** Asks the node that serves the key. */
  async command(key, ...words) {
    return (await this.at(key)).command(...words)
  }

  /** Writes small keys with this tag. */
  async fill(tag, count) {
    const node = await this.at(tag)
    const keys = Array.from({ length: count }, (_, number) => `{${tag}}:filler:${number}`)
    while (keys.length) await node.command('MSET', ...keys.splice(0, AT_A_TIME).flatMap((key) => [key, 'x']))
  }

  /** From now on the slot is MIGRATING where it is, and IMPORTING at the other node. No key moves yet. */
  async beginMove(slot, to) {
    const source = await this.primary(slot)
    await to.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', this.#id(source))
    await source.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', this.#id(to))
  }

  /** Moves at most so many keys of a slot whose move has begun; how many it moved. */
  async moveKeys(slot, to, limit = AT_A_TIME) {
    const source = await this.primary(slot)
    const keys = await source.command('CLUSTER', 'GETKEYSINSLOT', slot, limit)
    const login = this.password ? ['AUTH', this.password] : []
    if (keys.length) await source.command('MIGRATE', '127.0.0.1', to.ownPort, '', 0, PATIENCE_MS, ...login, 'KEYS', ...keys)
    return keys.length
  }

  /** Ends the move of a slot whose keys have all moved: the other node serves it from now on, and all know. */
  async finishMove(slot, to) {
    const source = await this.primary(slot)
    const others = this.#running.filter((node) => node !== to && node !== source)
    // The target first: if the source went first, both could send clients to each other.
    for (const node of [to, source, ...others]) {
      await node.command('CLUSTER', 'SETSLOT', slot, 'NODE', this.#id(to)).catch((error) => {
        // A replica learns it from its primary.
        if (!error.message.includes('replica')) throw error
      })
    }
    await this.#allName(slot, to)
  }

  /** Moves a slot with all its keys, key by key. */
  async moveSlot(slot, to) {
    await this.beginMove(slot, to)
    while (await this.moveKeys(slot, to));
    await this.finishMove(slot, to)
  }

  /** Whether the servers can move a slot at once (Valkey 9). */
  get movesAtOnce() {
    const { kind, version } = this.nodes[0].binary
    return kind === 'valkey' && parseInt(version) >= 9
  }

  /** Moves a slot with all its keys at once, as Valkey 9 does: each key is served without a gap. */
  async moveAtOnce(slot, to) {
    await (await this.primary(slot)).command('CLUSTER', 'MIGRATESLOTS', 'SLOTSRANGE', slot, slot, 'NODE', this.#id(to))
    await this.#allName(slot, to)
  }

  /** Kills a primary, and waits until all nodes that run name its replica, which is returned. */
  async failOver(primary) {
    const { first } = (await served(primary)).find(({ ids }) => ids[0] === this.#id(primary))
    await primary.kill()
    const isTakenOver = async (node) => {
      const named = await this.#primaryFor(node, first)
      return named && named !== primary && (await info(node, 'cluster_state')) === 'ok'
    }
    await every(this.#running, isTakenOver)
    return this.primary(first)
  }

  async close() {
    for (const node of this.nodes) await node.close()
  }

  get #running() {
    return this.nodes.filter(({ isRunning }) => isRunning)
  }

  #id(node) {
    return [...this.#ids].find(([, known]) => known === node)[0]
  }

  async #primaryFor(node, slot) {
    const range = (await served(node)).find(({ first, last }) => first <= slot && slot <= last)
    return range && this.#ids.get(range.ids[0])
  }

  async #allName(slot, to) {
    await every(this.#running, async (node) => (await this.#primaryFor(node, slot)) === to)
  }
}

/** Starts a cluster that is closed with the test `t`. */
export async function startCluster(t, options) {
  const cluster = await Cluster.start(options)
  t.after(() => cluster.close())
  return cluster
}

/** Waits until something is so at every node. */
async function every(nodes, isSo) {
  for (const node of nodes) await until(() => isSo(node), PATIENCE_MS)
}

/** The ranges of slots, and the nodes that have them: the primary first. */
async function served(node) {
  const ranges = await node.command('CLUSTER', 'SLOTS')
  return ranges.map(([first, last, ...nodes]) => ({ first, last, ids: nodes.map(([, , id]) => id) }))
}

async function info(node, field) {
  const lines = (await node.command('CLUSTER', 'INFO')).split('\r\n').map((line) => line.split(':'))
  return lines.find(([name]) => name === field)?.[1]
}
