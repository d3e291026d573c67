// The checkout: its root, and paths of its files.

import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import path from 'node:path'

export const root = fileURLToPath(new URL('../../..', import.meta.url))

/** A file that `tests/run setup` made under .venv. */
export function prepared(file) {
  const found = path.join(root, '.venv', file)
  if (!existsSync(found)) throw new Error(`${found} is missing: run \`tests/run setup\``)
  return found
}

/** A certificate or key of the TLS tests, such as ca.pem or client.key; tests/certificates.py lists them. */
export function certificate(file) {
  return path.join(prepared('certificates'), file)
}

/** Every version of Redis and Valkey that can be started here: { name, kind, version, path }. */
export function binaries() {
  return JSON.parse(readFileSync(prepared('servers.json'), 'utf8'))
}

/** The version of that name, else that of LOCKTENDER_TEST_SERVER, else the first. */
export function binary(name = process.env.LOCKTENDER_TEST_SERVER) {
  const found = binaries().find((each) => name === undefined || each.name === name)
  if (!found) throw new Error(`no server ${name} in .venv/servers.json`)
  return found
}
