/**
 * One process, one core: by either door the same objects.
 * The core's own path is read from the list of what is mapped into the process.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import * as imported from 'corespun'

const require = createRequire(import.meta.url)
const required = require('corespun')
const door = new URL('./native/index.js', import.meta.resolve('corespun'))
const { native } = await import(door)
const same = native === require(door.pathname).native && imported.zone === required.zone
console.log(same ? 'same core, same classes' : 'two of them')
const mapped = readFileSync('/proc/self/maps', 'utf8').match(/\S+\.node$/gm) ?? []
console.log([...new Set(mapped)].join('\n'))
