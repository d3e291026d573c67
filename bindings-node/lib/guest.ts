/**
 * Calls code of the application: a listener, or its own signal. An error that it throws is an uncaught exception of the
 * application, as with any emitter. Later results are not lost. @internal
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
