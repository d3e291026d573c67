// The locks of the core, as this package uses them.

import type * as native from '../native/index.js'
import { valueOf } from './errors.js'
import type { LockOptions } from './options.js'

/** What the core does with a lock, a job or an election, and the client that it keeps alive. @internal */
export interface Made<Core = CoreLock> {
  readonly core: Core
  readonly client: object
}

/** The core's lock. It is made when it is used for the second time: most locks are acquired once. @internal */
export class CoreLock {
  #isUsed = false
  #made: native.Lock | undefined

  constructor(
    private readonly client: native.Client,
    private readonly maker: native.LockMaker,
    private readonly name: string,
    private readonly options: LockOptions | undefined,
  ) {}

  get #lock(): native.Lock {
    return (this.#made ??= valueOf(this.client.lock(this.maker, this.name, this.options)))
  }

  #isUsedAgain(): boolean {
    const before = this.#isUsed
    this.#isUsed = true
    return before
  }

  /** Why there can be no such lock. */
  refusal(): native.Failure | null {
    return this.client.refusal(this.maker, this.name, this.options)
  }

  acquire(): number {
    return this.#isUsedAgain() ? this.#lock.acquire() : this.client.acquire(this.maker, this.name, this.options)
  }

  tryAcquire(): number {
    return this.#isUsedAgain() ? this.#lock.tryAcquire() : this.client.tryAcquire(this.maker, this.name, this.options)
  }

  inspect(): number {
    return this.#lock.inspect()
  }

  forceRelease(owner: string | undefined): number {
    return this.#lock.forceRelease(owner)
  }
}

/** The kinds of locks, by the function that makes one. @internal */
export type LockMaker = `${native.LockMaker}`
