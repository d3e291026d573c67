// Examples of the public types: each one is run, and every verb has one.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { format } from 'node:util'

import { Redis } from 'ioredis'
import * as locktender from 'locktender'
import * as influxdb from 'locktender/influxdb'
import * as opentelemetry from 'locktender/opentelemetry'
import * as prometheus from 'locktender/prometheus'
import * as testing from 'locktender/testing'
import typescript from 'typescript'

import { committed } from '../../bindings-node/public-types.mjs'

const { ModuleKind, ScriptTarget, SyntaxKind } = typescript
const VERBS = [SyntaxKind.Constructor, SyntaxKind.FunctionDeclaration, SyntaxKind.GetAccessor, SyntaxKind.MethodDeclaration]

const source = typescript.createSourceFile('public-types.d.ts', readFileSync(committed, 'utf8'), ScriptTarget.Latest, true)
const items = source.statements.flatMap((item) => (typescript.isClassDeclaration(item) ? [item, ...item.members] : [item]))

/** The item's name: that of a member begins with its class. */
function nameOf(item) {
  const own = item.name?.getText() ?? 'constructor'
  return typescript.isClassElement(item) ? `${item.parent.name.text}.${own}` : own
}

function examplesOf(item) {
  const tags = typescript.getJSDocTags(item).filter(({ tagName }) => tagName.text === 'example')
  return tags.map(({ comment }) => typescript.getTextOfJSDocComment(comment).match(/^```js\n(.*)\n```$/s)[1])
}

const examples = items.flatMap((item) => examplesOf(item).map((text) => [nameOf(item), text]))

test('every verb has an example, or its class has one that uses it', () => {
  const verbs = items.filter((item) => VERBS.includes(item.kind) && !typescript.getJSDocDeprecatedTag(item)).map(nameOf)
  assert.ok(verbs.includes('Holding.release') && verbs.includes('withLock'))
  const isShown = (verb) => {
    const [owner, own] = verb.split('.', 2)
    const use = own === 'constructor' ? `new ${owner}(` : `.${own}`
    return examples.some(([name, text]) => name === verb || (name === owner && text.includes(use)))
  }
  assert.deepEqual(verbs.filter((verb) => !isShown(verb)), [])
})

/** Runs an example with servers of its own; the result is what it has printed. `await using` is compiled down for Node 20. */
async function run(text) {
  const printed = []
  const given = { ...locktender, ...influxdb, ...opentelemetry, ...prometheus, ...testing, Redis, console: { ...console, log: (...values) => printed.push(format(...values)) } }
  const own = text.replaceAll('memory://', `memory://${randomUUID()}-`)
  const compilerOptions = { module: ModuleKind.ESNext, target: ScriptTarget.ES2022 }
  const { outputText } = typescript.transpileModule(`return (async () => {\n${own}\n})()`, { compilerOptions })
  await new Function(...Object.keys(given), outputText)(...Object.values(given))
  return printed
}

for (const [name, text] of examples) {
  test(`the example of ${name} runs, and prints what it says`, async () => {
    const said = [...text.matchAll(/console\.log\(.*\/\/ (.*)$/gm)].map((match) => match[1])
    assert.deepEqual(await run(text), said)
  })
}
