// Servers for places on another system, such as Windows under wine. It prints them in one line, for LOCKTENDER_CONTRACT_SERVERS there, and
// ends with its standard input.

import { Places } from './place.mjs'

const places = new Places()
console.log(JSON.stringify(await places.all()))
process.stdin.resume().once('end', () => places.close())
