import { EventEmitter } from 'node:events'

import type { ClientEvents } from './events.js'

/** A function that is called with what an event says. */
export type Listener<K extends keyof ClientEvents> = (...args: ClientEvents[K]) => void

/**
 * Node's `EventEmitter`, with the events of a client. They are written out: `EventEmitter` takes them as a type only since @types/node
 * 20.11.21, and with older types a client would not even have an `on`.
 */
export interface ClientEmitter extends EventEmitter {
  on<K extends keyof ClientEvents>(event: K, listener: Listener<K>): this
  once<K extends keyof ClientEvents>(event: K, listener: Listener<K>): this
  off<K extends keyof ClientEvents>(event: K, listener: Listener<K>): this
  addListener<K extends keyof ClientEvents>(event: K, listener: Listener<K>): this
  prependListener<K extends keyof ClientEvents>(event: K, listener: Listener<K>): this
  prependOnceListener<K extends keyof ClientEvents>(event: K, listener: Listener<K>): this
  removeListener<K extends keyof ClientEvents>(event: K, listener: Listener<K>): this
  emit<K extends keyof ClientEvents>(event: K, ...args: ClientEvents[K]): boolean
}

export const ClientEmitter = EventEmitter as unknown as new () => ClientEmitter
