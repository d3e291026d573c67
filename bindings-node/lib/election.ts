import type * as native from '../native/index.js'
import type { Made } from './core.js'
import { InvalidArgumentError, valueOf } from './errors.js'
import { Hold } from './hold.js'
import type { Release } from './holding.js'
import { onlySignal, type AcquireOptions } from './options.js'
import { outcomeUnless, resultOf, type Granted } from './queue.js'
import { traced } from './tracing.js'

/** The work of a leader. */
export type LeaderWork = (leadership: Leadership) => unknown

/**
 * One term of a leader: a `Hold` with a number that only rises.
 *
 * @example
 * ```js
 * const leadership = await new Client('memory://example').election('scheduler').campaign()
 * const row = { total: 7, fence: leadership.term }   // the database refuses a row with a smaller fence
 * await leadership.resign()
 * ```
 */
export class Leadership extends Hold {
  readonly #stop: AbortSignal | undefined
  #either: AbortSignal | undefined

  /** @internal */
  constructor(name: string, client: object, granted: Granted, stop?: AbortSignal) {
    super(name, client, granted)
    this.#stop = stop
  }

  /**
   * The term: the `fence`, larger than every earlier leader's. Send it with all that the leader does, and let the receiver refuse a
   * smaller one: a leader may be late.
   */
  get term(): number {
    return this.fence
  }

  /**
   * A signal that is aborted when the term is lost, as that of a `Hold`. In the work of `lead` it is also aborted when the `signal`
   * of `lead` is: the work should end. A wait for it keeps no process alive.
   *
   * @example
   * ```js
   * const leadership = await new Client('memory://example').election('scheduler').campaign()
   * const answer = await fetch('data:,paid', { signal: leadership.signal })   // ends at once if the term is lost
   * await leadership.resign()
   * ```
   */
  override get signal(): AbortSignal {
    const lost = super.signal
    if (!this.#stop) return lost
    return (this.#either ??= AbortSignal.any([lost, this.#stop]))
  }

  /**
   * Ends the term, and notifies the next candidate: `release`.
   *
   * @example
   * ```js
   * const leadership = await new Client('memory://example').election('scheduler').campaign()
   * const { outcome } = await leadership.resign()
   * console.log(outcome)   // released
   * ```
   */
  resign(): Promise<Release> {
    return this.release()
  }
}

/** The leader that an observer saw. */
export interface Leader {
  /** The owner value. A person can read in it which program leads. */
  readonly owner: string
  /** The term: its fence. */
  readonly term: number
  /** The time at which the leader asked for its term, by its own clock. */
  readonly since: Date | null
  /** How long its term remained on the servers at the time of the observation, without a renewal; `Infinity` if its key has no expiry. */
  readonly remainingMs: number
}

/** What an observer saw. */
export interface Observation {
  /** The leader; `null` if there is none, or if that is unknown. */
  readonly leader: Leader | null
  /**
   * Whether the servers didn't show who leads: no majority of them agrees, or too few can be reached. The last leader may still lead.
   */
  readonly unknown: boolean
}

/** An observer: its `return` ends the `next` under way, too. */
class Observer implements AsyncIterableIterator<Observation> {
  // The client is only kept alive.
  readonly #kept: Made<native.Observer>
  readonly #over = new AbortController()
  readonly #signal: AbortSignal

  constructor(made: Made<native.Election>, signal: AbortSignal | undefined) {
    this.#kept = { core: made.core.observe(), client: made.client }
    this.#signal = signal ? AbortSignal.any([signal, this.#over.signal]) : this.#over.signal
  }

  async next(): Promise<IteratorResult<Observation, undefined>> {
    try {
      if (!this.#over.signal.aborted) {
        const seen = await outcomeUnless(this.#signal, () => this.#kept.core.next())
        return { done: false, value: resultOf<Observation>(seen) }
      }
    } catch (error) {
      if (!this.#over.signal.aborted) throw error
    }
    return await this.return()
  }

  return(): Promise<IteratorResult<Observation, undefined>> {
    this.#over.abort()
    return Promise.resolve({ done: true, value: undefined })
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}

/**
 * An election, as a name and options: any number of candidates, of which one leads. It does no I/O by itself.
 *
 * It is the lock of the same name, with verbs of its own. A leader is renewed in the background. If it resigns, the next candidate
 * leads at once. If it dies, the next one leads when its `ttlMs` has passed. Two leaders are never valid at the same time, and each term
 * is larger than all earlier ones. docs/guarantees.md says under which assumptions. It works with one server and with a quorum.
 *
 * @example
 * ```js
 * const stop = new AbortController()   // stop.abort() where the process has to end
 * const election = new Client('memory://example').election('scheduler')
 * const led = election.lead(async ({ term, signal }) => {
 *   console.log(term > 0, signal.aborted)   // true false
 *   stop.abort()
 * }, { signal: stop.signal })
 * await led.catch((reason) => console.log(reason.name))   // AbortError
 * ```
 */
export class Election {
  readonly #made: () => Made<native.Election>
  /** The name, without the client's prefix. */
  readonly name: string

  /** @internal */
  constructor(name: string, made: () => Made<native.Election>) {
    this.name = name
    this.#made = made
  }

  /**
   * Campaigns: waits at most `waitMs` while another candidate leads, and then leads. Aborting `signal` ends the wait, and rejects with
   * the signal's reason. After the campaign the signal has no effect.
   *
   * Rejects as the `acquire` of a lock.
   *
   * @example
   * ```js
   * const leadership = await new Client('memory://example').election('scheduler').campaign({ signal: AbortSignal.timeout(5_000) })
   * console.log(leadership.isValid())   // true
   * await leadership.resign()
   * ```
   */
  async campaign(options?: AcquireOptions): Promise<Leadership> {
    const signal = onlySignal(options, 'campaign')
    return await this.#led(signal, () => this.#made().core.campaign()) as Leadership
  }

  /**
   * Tries once to lead: `null` if another candidate leads. Rejects as the `tryAcquire` of a lock.
   *
   * @example
   * ```js
   * const election = new Client('memory://example').election('scheduler')
   * const leadership = await election.tryCampaign()
   * console.log(await election.tryCampaign())   // null
   * await leadership?.resign()
   * ```
   */
  async tryCampaign(options?: AcquireOptions): Promise<Leadership | null> {
    const signal = onlySignal(options, 'campaign')
    return await this.#led(signal, () => this.#made().core.tryCampaign())
  }

  #led(signal: AbortSignal | undefined, start: () => number, stop?: AbortSignal): Promise<Leadership | null> {
    return traced('acquire', this.name, async () => {
      const granted = resultOf<Granted | undefined>(await outcomeUnless(signal, start))
      return granted ? new Leadership(this.name, this.#made().client, granted, stop) : null
    })
  }

  /**
   * Observes who leads: the leader now, and then each change that the observer sees. It never ends by itself: `break` ends it, and
   * aborting `signal` rejects with the signal's reason.
   *
   * A leader announces on the servers' channels that it leads, and that it has resigned. An observer polls the servers then, when the
   * leader's term would end there, and once a second. It polls only while it is asked for the next observation, and misses what comes and
   * goes between two polls. Terms never go back.
   *
   * An observer decides nothing: what it gave may be over. A program that acts for the leader sends its `term` along, and the resource
   * refuses a smaller one.
   *
   * Rejects with `DeniedError`, `KeyConflictError`, `InvalidArgumentError` or `ClosedError`. Servers that can't be reached are no error,
   * but `unknown`.
   *
   * @example
   * ```js
   * const election = new Client('memory://example').election('scheduler')
   * const leadership = await election.campaign()
   * for await (const { leader } of election.observe()) {
   *   console.log(leader.term === leadership.term)   // true
   *   break
   * }
   * await leadership.resign()
   * ```
   */
  observe(options?: AcquireOptions): AsyncIterableIterator<Observation> {
    return new Observer(this.#made(), onlySignal(options, 'campaign'))
  }

  /**
   * Leads term after term: campaigns, calls `work` as the leader, resigns when it has ended, and campaigns again. It never resolves:
   * aborting `signal` ends it, and rejects with the signal's reason.
   *
   * - A campaign waits as long as it takes, unless the election has a `waitMs` of its own. It continues while the servers can't be
   *   reached.
   * - `leadership.signal` is aborted if the term is lost, and if `signal` is aborted. Nothing else can stop `work`: it has to end.
   *   `lead` resigns only when `work` has ended, and calls no `work` before that.
   * - `work` returns, or throws because the term was lost: the next campaign begins. What else it throws comes back.
   *
   * Rejects as `campaign`, but never with `UnavailableError`, and with `AcquireTimeoutError` only if the election has a `waitMs` of its
   * own. Rejects with `InvalidArgumentError` while another call leads by this election.
   *
   * @example
   * ```js
   * const [stop, election] = [new AbortController(), new Client('memory://example').election('scheduler')]
   * const led = election.lead(async ({ term, signal }) => {
   *   const answer = await fetch(`data:,term ${term > 0}`, { signal })   // ends at once if the term is lost
   *   console.log(await answer.text())   // term true
   *   stop.abort('enough')
   * }, { signal: stop.signal })
   * await led.catch((reason) => console.log(reason))   // enough
   * ```
   */
  async lead(work: LeaderWork, options?: AcquireOptions): Promise<never> {
    if (typeof work !== 'function') throw InvalidArgumentError.of('work', work, 'must be a function')
    const signal = onlySignal(options, 'campaign')
    const leading = valueOf(this.#made().core.leading())
    try {
      for (;;) {
        const leadership = (await this.#led(signal, () => leading.next(), signal)) as Leadership
        await term(leadership, work, signal)
      }
    } finally {
      leading.end()
    }
  }
}

/** One term: calls `work`, and resigns when it has ended. Throws what ends leading. */
async function term(leadership: Leadership, work: LeaderWork, stop: AbortSignal | undefined): Promise<void> {
  try {
    // It may have been aborted since the grant.
    stop?.throwIfAborted()
    await work(leadership)
  } catch (error) {
    const isLoss = leadership.isLoss(error)
    await leadership.leave().catch(() => undefined)
    stop?.throwIfAborted()
    if (isLoss) return
    throw error
  }
  await leadership.leave().catch((error: unknown) => {
    if (!leadership.isLoss(error)) throw error
  })
  stop?.throwIfAborted()
}
