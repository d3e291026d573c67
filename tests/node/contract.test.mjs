// The contract: the cases of tests/contract, which every language must pass.

import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { after, test } from 'node:test'

import { Places, placesOf } from './contract/place.mjs'
import { Scene } from './contract/scene.mjs'
import { root } from './support/checkout.mjs'

const directory = path.join(root, 'tests/contract')
const places = new Places()

after(() => places.close())

async function play(file, played, index, at) {
  const place = await places.make(at)
  const before = { ...process.env }
  Object.assign(process.env, played.environment)
  try {
    await new Scene(played, place, `${path.basename(file, '.json')}-${index}-${place.name}`).play()
  } finally {
    for (const key of Object.keys(played.environment ?? {})) delete process.env[key]
    Object.assign(process.env, before)
  }
}

for (const file of readdirSync(directory).filter((name) => name.endsWith('.json'))) {
  // Several at once, for they mostly wait; but those that change the environment, which the process shares, alone.
  test(file, { concurrency: 8 }, async (t) => {
    const cases = JSON.parse(readFileSync(path.join(directory, file), 'utf8'))
    const chosen = cases.filter(({ languages = ['node'] }) => languages.includes('node'))
    const plays = chosen.flatMap((played, index) => placesOf(played.at).map((at) => [played, index, at]))
    const title = (played, at) => `${played.case} [${at.scripted?.join('; ') ?? at.urls ?? at}]`
    const start = ([played, index, at]) => t.test(title(played, at), () => play(file, played, index, at))
    await Promise.all(plays.filter(([played]) => !played.environment).map(start))
    for (const each of plays.filter(([played]) => played.environment)) await start(each)
  })
}
