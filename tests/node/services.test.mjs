// The examples of web services: who is busy, who is refused, what a customer who hangs up frees, and how SIGTERM ends each.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import test from 'node:test'
import { promisify } from 'node:util'

import { Client } from 'locktender'
import ts from 'typescript'

import { prepared, root } from './support/checkout.mjs'
import { long } from './support/long.mjs'
import { until } from './support/observe.mjs'
import { startServer } from './support/server.mjs'
import { Service } from './support/service.mjs'

/** Longer than any test, in milliseconds. */
const LONG = '600000'

/** The JavaScript that a Nest user's build makes of a file. */
function compiled(file) {
  const { ES2022 } = ts.ScriptTarget
  const compilerOptions = { target: ES2022, module: ts.ModuleKind.ES2022, experimentalDecorators: true, emitDecoratorMetadata: true }
  return ts.transpileModule(readFileSync(path.join(root, file), 'utf8'), { compilerOptions }).outputText
}

/** What runs each service, and the options of its tests. */
const services = {
  'express.mjs': [() => [process.execPath, 'examples/node/express.mjs']],
  'fastify.mjs': [() => [process.execPath, 'examples/node/fastify.mjs']],
  'nestjs.ts': [() => [process.execPath, '--input-type=module', '--eval', compiled('examples/node/nestjs.ts')]],
  axum_orders: [() => [prepared('bin/axum_orders')], long],
}

for (const [example, [command, options = {}]] of Object.entries(services)) {
  const begin = async (t, environment) => {
    const server = await startServer(t)
    return { server, service: await Service.start(t, command(), { LOCKTENDER_URL: server.url, ...environment }) }
  }

  test(`${example}: one charge at a time for each order`, options, async (t) => {
    const { server, service } = await begin(t)
    const replica = new Client(server.url)
    await replica.withLock('orders:7', async () => {
      assert.deepEqual(await service.post('/orders/7/charge'), { status: 409, retryAfter: '1', body: { code: 'ACQUIRE_TIMEOUT' } })
      assert.equal((await service.post('/orders/8/charge')).status, 200)
    })
    await replica.close()
    const { status, body } = await service.post('/orders/7/charge')
    assert.deepEqual([status, body.order, body.fence > 0], [200, '7', true])
    await server.kill()
    assert.deepEqual(await service.post('/orders/7/charge'), { status: 503, retryAfter: '1', body: { code: 'UNAVAILABLE' } })
    assert.equal(await service.terminate(), '')
  })

  test(`${example}: a customer who hangs up frees the lock`, options, async (t) => {
    const { server, service } = await begin(t, { CHARGE_MS: LONG })
    const gone = new AbortController()
    const charged = service.post('/orders/7/charge', { signal: gone.signal }).catch((error) => error)
    await until(() => server.command('EXISTS', 'orders:7'))
    assert.equal((await service.post('/orders/7/charge')).status, 409)
    gone.abort()
    assert.equal((await charged).name, 'AbortError')
    await until(async () => (await server.command('EXISTS', 'orders:7')) === 0)
    assert.equal(await service.terminate(), '')
  })

  test(`${example}: by SIGTERM it finishes its requests, and frees their locks`, options, async (t) => {
    const { server, service } = await begin(t, { GRACE_MS: LONG })
    const agent = new http.Agent({ keepAlive: true })
    t.after(() => agent.destroy())
    let ended = false
    const charged = service.post('/orders/7/charge', { agent }).finally(() => (ended = true))
    await until(async () => (await server.command('EXISTS', 'orders:7')) || ended)
    assert.equal(await service.terminate(), '')
    assert.equal((await charged).status, 200)
    assert.equal(await server.command('EXISTS', 'orders:7'), 0)
  })

  test(`${example}: by SIGTERM it calls off what takes too long, and frees its lock`, options, async (t) => {
    const { server, service } = await begin(t, { CHARGE_MS: LONG, GRACE_MS: '50' })
    const charged = service.post('/orders/7/charge').catch((error) => error)
    await until(() => server.command('EXISTS', 'orders:7'))
    await service.terminate() // Nest logs it if the end of the client is faster than that of the connection
    assert.notEqual((await charged).status, 200)
    assert.equal(await server.command('EXISTS', 'orders:7'), 0)
  })
}

test('nestjs.ts compiles strictly', long, async () => {
  const options = ['--noEmit', '--strict', '--target', 'es2022', '--module', 'nodenext', '--types', 'node', '--skipLibCheck']
  const command = ['node_modules/typescript/bin/tsc', ...options, '--experimentalDecorators', '--emitDecoratorMetadata', 'examples/node/nestjs.ts']
  const { code = 0, stdout } = await promisify(execFile)(process.execPath, command, { cwd: root }).catch((error) => error)
  assert.deepEqual([code, stdout], [0, ''])
})
