export { Clock } from './clock.js'
export { ScriptedServer } from './scripted.js'
export type { Seen } from './scripted.js'
