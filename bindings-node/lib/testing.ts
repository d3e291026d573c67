export { ScriptedServer } from './scripted.js'
export type { Seen } from './scripted.js'
