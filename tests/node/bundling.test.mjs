// A service that is bundled: with the package left out, as docs/node.md says, and with the addon copied beside the bundle.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'

import { build } from 'esbuild'

import { root } from './support/checkout.mjs'

const directory = mkdtempSync(path.join(tmpdir(), 'locktender-'))
after(() => rmSync(directory, { recursive: true }))

const [addon] = readdirSync(path.join(root, 'bindings-node/native')).filter((file) => file.endsWith('.node'))
const [, platform] = addon.split('.')
const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'))

/** Installs the package as npm does: the façade, and the addon in a package of its own. */
function install() {
  for (const part of ['package.json', 'bindings-node/dist', 'bindings-node/native/index.js']) {
    cpSync(path.join(root, part), path.join(directory, 'node_modules/locktender', part), { recursive: true })
  }
  const own = path.join(directory, 'node_modules/@locktender', `binding-${platform}`)
  mkdirSync(own, { recursive: true })
  cpSync(path.join(root, 'bindings-node/native', addon), path.join(own, addon))
  writeFileSync(path.join(own, 'package.json'), JSON.stringify({ name: `@locktender/binding-${platform}`, version, main: addon }))
  writeFileSync(path.join(directory, 'service.mjs'), `
    import { Client, LockError } from 'locktender'
    const run = async () => {
      const client = new Client('memory://bundled')
      const fence = await client.withLock('orders:42', (held) => held.fence)
      const error = await client.withLock('', () => undefined).catch((error) => error)
      await client.close()
      console.log(fence > 0, error instanceof LockError)
    }
    run()`)
}

install()

/** What the bundle prints that esbuild makes with these options. */
async function bundled(name, options) {
  const outfile = path.join(directory, 'out', name)
  await build({ entryPoints: [path.join(directory, 'service.mjs')], outfile, bundle: true, platform: 'node', logLevel: 'silent', ...options })
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [outfile])
  return stdout + stderr
}

const ways = {
  'left out, by its name': { external: ['locktender'] },
  'left out with all packages': { packages: 'external' },
  'copied beside the bundle': { loader: { '.node': 'copy' } },
}
for (const [way, options] of Object.entries(ways)) {
  test(`a bundle works with the addon ${way}`, async () => {
    assert.equal(await bundled(`${way}.cjs`, { ...options, format: 'cjs' }), 'true true\n')
    if (!options.loader) assert.equal(await bundled(`${way}.mjs`, { ...options, format: 'esm' }), 'true true\n')
  })
}

test('a bundler that is told nothing stops, and names the addon', async () => {
  await assert.rejects(bundled('nothing.cjs', { format: 'cjs' }), (error) => {
    assert.match(error.message, /No loader is configured for "\.node" files: .*locktender\.[\w-]+\.node/)
    return true
  })
})
