// The public surface of the package as one committed file, public-types.txt, so that a change of it shows in a review.
// `npm run build:types` writes it; tests/node/types.test.mjs compares it with the build.

import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const dist = new URL('dist/', import.meta.url)
// What users import, and what that is made of.
const modules = ['index', 'client', 'locking', 'overview', 'emitter', 'body', 'default', 'lock', 'multi', 'hold', 'holding', 'job', 'election', 'options', 'credentials', 'errors', 'events', 'metrics', 'opentelemetry', 'prometheus', 'influxdb', 'tracing', 'ioredis', 'servers', 'testing', 'scripted', 'clock']

/** The committed file. */
export const committed = fileURLToPath(new URL('public-types.txt', import.meta.url))

/** The surface as it is built. */
export function publicTypes() {
  const parts = modules.map((name) => `// ${name}\n\n${readFileSync(new URL(`${name}.d.ts`, dist), 'utf8')}`)
  return parts.join('\n')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(committed, publicTypes())
