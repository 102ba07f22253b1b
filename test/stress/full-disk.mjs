/**
 * A process that fills a small disk with a store, for full-disk.test.mjs: prints what happened as JSON.
 *
 * The disk is the folder in its argument. A ballast file takes space, and its removal makes space.
 */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { store } from '../../dist/store/index.js'

const [folder] = process.argv.slice(2)
const [file, ballast] = [join(folder, 'store.db'), join(folder, 'ballast')]
const codeOf = (error) => error.code
const text = 'x'.repeat(20_000)
const used = store.create('full', { file })
used.set('before', 1)
await used.flush()
writeFileSync(ballast, new Uint8Array(1_000_000))

let written = 0
let code
while (code === undefined) {
  used.set(`key ${written}`, text)
  code = await used.flush().then(() => undefined, codeOf)
  if (code === undefined) written += 1
}
const message = await used.flush().then(
  () => '',
  (error) => error.message,
)
const [inMemory, again] = [used.get(`key ${written}`)?.length, await used.flush().then(() => '', codeOf)]
rmSync(ballast)
await used.flush()
used.set('after', 2)
await used.flush()
used.close()

const reopened = store.create('full', { file })
const keys = [...Array(written + 1).keys()].filter((n) => reopened.get(`key ${n}`)?.length !== text.length)
const around = [reopened.get('before'), reopened.get('after')]
try {
  writeFileSync(ballast, new Uint8Array(10_000_000))
} catch (error) {
  if (error.code !== 'ENOSPC') throw error
}
let closing
for (let n = 0; n < 500; n++) reopened.set(`last ${n}`, text)
try {
  reopened.close()
} catch (error) {
  closing = error.code
}
console.log(
  JSON.stringify({ code, message, inMemory, again, written, missing: keys.length, around, closing }),
)
