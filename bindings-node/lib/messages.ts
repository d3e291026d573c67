import { inspect, types } from 'node:util'

/** What a person reads of anything that was thrown. It may be an error of another realm, and its own code may throw. @internal */
export function messageOf(error: unknown): string {
  try {
    if (typeof error === 'string') return error
    const message: unknown = types.isNativeError(error) || error instanceof Error ? error.message || error.name : undefined
    return typeof message === 'string' ? message : inspect(error, { depth: 1, breakLength: Infinity, customInspect: false })
  } catch {
    return typeof error
  }
}
