// Services: the examples that answer HTTP. Each is a process of its own, which prints its URL when it listens.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import { createInterface } from 'node:readline'
import { json } from 'node:stream/consumers'

import { root } from './checkout.mjs'
import { PATIENCE_MS } from './observe.mjs'

/** A running service: what it answers, and how it ends. */
export class Service {
  #child
  #ended
  #errors = ''

  /** Runs a command; the service ends with the test `t`. */
  static async start(t, [file, ...args], environment) {
    const service = new Service()
    const env = { ...process.env, ...environment }
    const limit = { timeout: 2 * PATIENCE_MS, killSignal: 'SIGKILL' } // only a service that does not end needs it
    const child = spawn(file, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'], ...limit })
    service.#child = child
    service.#ended = once(child, 'close')
    child.stderr.on('data', (data) => (service.#errors += data))
    t.after(() => child.kill('SIGKILL'))
    const lines = createInterface({ input: child.stdout })
    service.url = await Promise.race([once(lines, 'line').then(([line]) => line), service.#ended])
    assert.match(String(service.url), /^http:/, service.#errors)
    return service
  }

  /** Its answer to a request: the status, `Retry-After` and what its JSON says. The connection is not kept alive, but with an agent. */
  async post(path, options) {
    const request = http.request(this.url + path, { method: 'POST', agent: false, ...options }).end()
    const [answer] = await once(request, 'response')
    return { status: answer.statusCode, retryAfter: answer.headers['retry-after'], body: await json(answer) }
  }

  /** Tells it to end, and waits until it has: it must exit with 0. What it said on its standard error. */
  async terminate() {
    this.#child.kill('SIGTERM')
    const [code, signal] = await this.#ended
    assert.equal(signal ?? code, 0, this.#errors)
    return this.#errors
  }
}
