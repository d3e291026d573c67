// Proxy: a network between client and server that fails on command.

import { prepared } from './checkout.mjs'
import { Program } from './program.mjs'

/**
 * A TCP proxy on 127.0.0.1 in front of one port, in a process of its own. It keeps no process alive.
 *
 * Everything can be changed while connections are open. tests/rust/src/proxy.rs says exactly what each method does.
 */
export class Proxy {
  #program

  static async start(upstream) {
    const proxy = new Proxy()
    proxy.#program = await Program.start(prepared('bin/locktender-proxy'), upstream)
    proxy.port = proxy.#program.number
    proxy.url = `redis://127.0.0.1:${proxy.port}`
    return proxy
  }

  /** Delays what arrives from now on, in milliseconds; it keeps its order and rate. */
  async latency(toServerMs = 0, toClientMs = 0) {
    await this.#program.ask('latency', toServerMs / 1_000, toClientMs / 1_000)
  }

  /** Closes all connections there are; new ones are accepted. */
  async cut() {
    await this.#program.ask('cut')
  }

  /** Passes new connections to another port from now on, and cuts the others: a failover. */
  async redirect(upstream) {
    await this.#program.ask('redirect', upstream)
  }

  /** Refuses new connections; those that are open stay. */
  async refuse() {
    await this.#program.ask('refuse')
  }

  /** Accepts new connections again. */
  async accept() {
    await this.#program.ask('accept')
  }

  /** Passes nothing any more: connections stay open, new ones are accepted, and all are silent. */
  async blackHole() {
    await this.#program.ask('black_hole')
  }

  /** Ends the black hole; what was held back arrives now. */
  async restore() {
    await this.#program.ask('restore')
  }

  /** Holds back what the server says from now on; it gets every request. */
  async holdAnswers() {
    await this.#program.ask('hold_answers')
  }

  /** Lets the answers go that are held; they arrive now. */
  async letAnswersGo() {
    await this.#program.ask('let_answers_go')
  }

  /** The next requests that contain the needle, in any case, are not passed on, their connections closed. */
  async cutBeforeApply(requests = 1, needle = '') {
    await this.#program.ask('cut_before_apply', requests, needle)
  }

  /** The same, but the server has answered: the client gets no byte of it. */
  async cutAfterApply(requests = 1, needle = '') {
    await this.#program.ask('cut_after_apply', requests, needle)
  }

  /** The same, but the connection stays open without a byte to the client any more. */
  async silenceAfterApply(requests = 1, needle = '') {
    await this.#program.ask('silence_after_apply', requests, needle)
  }

  /** How many of the faults ordered last are still to come. */
  async faultsLeft() {
    return Number(await this.#program.ask('faults_left'))
  }

  /** How many connections were ever accepted. */
  async connections() {
    return Number(await this.#program.ask('connections'))
  }

  /** How many connections are open. */
  async openConnections() {
    return Number(await this.#program.ask('open_connections'))
  }

  /** How many bytes the clients have sent. */
  async clientBytes() {
    return Number(await this.#program.ask('client_bytes'))
  }

  /** How many pieces they came in: about the number of the clients' writes. */
  async clientReads() {
    return Number(await this.#program.ask('client_reads'))
  }

  close() {
    return this.#program.close()
  }
}

/** Puts a proxy before a server, closed with the test `t`. */
export async function startProxy(t, server) {
  const proxy = await Proxy.start(server.port)
  t.after(() => proxy.close())
  return proxy
}
