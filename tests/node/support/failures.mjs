// A reporter of node:test: a line for each test of a file's own that failed, with its file.

import path from 'node:path'

import { root } from './checkout.mjs'

export default async function* failures(events) {
  for await (const { type, data } of events) {
    // What fails inside of a test makes that fail too.
    if (type === 'test:fail' && data.nesting === 0 && data.todo === undefined) {
      const file = path.relative(root, data.file ?? data.name)
      yield `${file}: ${data.name.replaceAll('\n', ' ')}\n`
    }
  }
}
