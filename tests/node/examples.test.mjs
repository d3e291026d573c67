// Examples: every Node example runs, on a real server.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { promisify } from 'node:util'

import { root } from './support/checkout.mjs'
import { clocks } from './support/clock.mjs'
import { startServer } from './support/server.mjs'

const examples = path.join(root, 'examples/node')
// Each process of these is one replica, which runs a task once per scheduled time.
const replicas = ['croner.mjs', 'node-cron.mjs']
// These run until they are told to end: services.test.mjs.
const services = ['express.mjs', 'fastify.mjs', 'nestjs.ts']
const apart = [...replicas, ...services, 'bullmq.mjs']

async function run(example, url, environment = {}) {
  const env = { ...process.env, LOCKTENDER_URL: url, ...environment }
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [path.join(examples, example)], { env, timeout: 60_000 })
  assert.equal(stderr, '')
  return stdout
}

for (const example of readdirSync(examples).filter((example) => !apart.includes(example))) {
  test(example, async (t) => void (await run(example, (await startServer(t)).url)))
}

test('bullmq.mjs: one job at a time for each customer', async (t) => {
  const said = (await run('bullmq.mjs', (await startServer(t)).url)).trim().split('\n')
  for (const customer of [7, 8]) {
    const lines = said.filter((line) => line.startsWith(`customer ${customer}: `)).map((line) => line.split(' ').slice(2).join(' '))
    const orders = [['May', 'June'], ['June', 'May']].map((months) => months.flatMap((month) => [`${month} begins`, `${month} ends`]))
    assert.ok(orders.some((order) => order.join() === lines.join()), said.join('\n'))
  }
})

for (const example of replicas) {
  const options = { skip: process.platform === 'darwin' && 'no LD_PRELOAD' }
  test(`${example}: of replicas whose clocks differ one runs per scheduled time`, options, async (t) => {
    const { url } = await startServer(t)
    const ahead = clocks(t)
    const said = await Promise.all([0, 300, 700].map((ms) => run(example, url, ahead(ms))))
    const answers = said.join('').trim().split('\n')
    for (const scheduledTime of new Set(answers.map((line) => line.split(' ')[0]))) {
      const lines = answers.filter((line) => line.startsWith(scheduledTime))
      const ran = lines.filter((line) => line.endsWith(' ran'))
      // On a machine that stalls a replica may ask after the next scheduled time, or while the work of the last one still runs.
      const none = lines.every((line) => /: (missed|running)$/.test(line))
      assert.equal(ran.length, none ? 0 : 1, said.join('\n'))
    }
    assert.match(said.join(''), /left out: done/, 'the replicas asked for the same scheduled times')
  })
}
