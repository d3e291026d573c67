import { addon } from './addon.js'

/**
 * Gives a class the methods that other libraries have in its place: a call throws, and says what there is here instead. They are no part
 * of its types. @internal
 */
export function answerWords(prototype: object, words: readonly string[], insteadOf: (word: string) => string = addon.insteadOfMember): void {
  for (const word of words) {
    const answer = (): never => {
      throw new TypeError(`there is no ${word}() here: ${insteadOf(word)}`)
    }
    Object.defineProperty(prototype, word, { value: answer, configurable: true, writable: true })
  }
}
