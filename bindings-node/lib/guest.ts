/**
 * Calls code of the application: a listener, or a signal of its own. What it throws is the application's, an uncaught exception as
 * with any emitter; the results that come after it are not lost for it. @internal
 */
export function callGuest(code: () => void): void {
  try {
    code()
  } catch (error) {
    process.nextTick(() => {
      throw error
    })
  }
}
