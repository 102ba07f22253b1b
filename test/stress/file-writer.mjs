/**
 * A process that writes into a store with a file until it is killed, for file-kills.test.mjs.
 *
 * Eight writers each count up the value of a key of their own, and print the number once flush() has
 * acknowledged it: what was printed must be in the file. Every value is written twice, under two keys in this
 * order, so that the parent sees a group that was cut apart.
 */
import { writeSync } from 'node:fs'
import { store } from '../../dist/store/index.js'

const [file] = process.argv.slice(2)
const used = store.create('killed', { file })
const filler = 'x'.repeat(200)

async function count(name) {
  for (let n = (used.get(name)?.n ?? 0) + 1; ; n++) {
    used.set(name, { n, filler })
    used.set(`${name} after`, { n })
    await used.flush()
    writeSync(1, `${name} ${n}\n`)
  }
}

await Promise.all(Array.from({ length: 8 }, (_, index) => count(`writer ${index}`)))
