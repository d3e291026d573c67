// How many are kept: an error is made soon after its cause.
const KEPT = 16

const latest = new Map<number, unknown>()

/** Keeps what a function of the program threw, under the number of the question that it was to answer. @internal */
export function keepCause(question: number, error: unknown): void {
  latest.set(question, error)
  if (latest.size > KEPT) latest.delete(latest.keys().next().value as number)
}

/** Gives `error` its cause, if it has one that is kept. @internal */
export function withCause<E extends Error>(error: E, question: number | null): E {
  if (question !== null && latest.has(question)) {
    Object.defineProperty(error, 'cause', { value: latest.get(question), writable: true, configurable: true })
  }
  return error
}
