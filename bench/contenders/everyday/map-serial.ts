/**
 * `node map-serial.js <folder>`: the same files in a loop, on one thread.
 *
 * The reference of table `everyday`.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import measure from './parse.js'

const folder = process.argv[2]
const names = readdirSync(folder).sort()
process.stdout.write(names.map((name) => `${JSON.stringify(measure(join(folder, name)))}\n`).join(''))
