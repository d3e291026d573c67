// The compiled half of the package: the error if it is missing.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import test from 'node:test'

import { root } from './support/checkout.mjs'

const { napi } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'))

/** What a require of the package in this directory fails with, as if this were another platform. */
function failureIn(directory, platform, arch) {
  const program = `
    Object.defineProperty(process, 'platform', { value: '${platform}' })
    Object.defineProperty(process, 'arch', { value: '${arch}' })
    try {
      require('locktender')
      console.log('loaded')
    } catch (error) {
      console.log(error.message, '|', error.cause instanceof Error)
    }`
  const { stdout, stderr } = spawnSync(process.execPath, ['--eval', program], { cwd: directory, encoding: 'utf8' })
  assert.equal(stderr, '')
  return stdout.trim()
}

test('a platform without a build is named, with those that have one', () => {
  const said = failureIn(root, 'win32', 'arm64')
  const there = [...new Set(napi.targets.map((target) => {
    const [arch, , system] = target.split('-')
    return `${system === 'windows' ? 'win32' : system}-${{ x86_64: 'x64', aarch64: 'arm64' }[arch]}`
  }))]
  assert.equal(said, `locktender has no build for win32-arm64; there are builds for ${there.join(', ')} | true`)
  assert.match(failureIn(root, 'linux', 's390x'), /^locktender has no build for linux-s390x; /)
})

test('a build that is not installed is named, with what installs it', (t) => {
  const directory = mkdtempSync(path.join(tmpdir(), 'locktender-'))
  t.after(() => rmSync(directory, { recursive: true }))
  for (const part of ['package.json', 'bindings-node/dist', 'bindings-node/native/index.js']) {
    cpSync(path.join(root, part), path.join(directory, 'node_modules/locktender', part), { recursive: true })
  }
  const said = failureIn(directory, process.platform, process.arch)
  assert.ok(said.startsWith(`locktender's build for ${process.platform}-${process.arch} can't be loaded`), said)
  assert.match(said, /optional dependency, @locktender\/binding-.*external \| true$/)
})
