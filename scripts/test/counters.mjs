/**
 * What V8 has counted in all processes and threads of a run, as one file for c8: a program with the folder of
 * what was counted and the path of the sum.
 *
 * They are some 3,500. Node would write the source maps of all modules into the file of each, three quarters
 * of 2 MB, so no module of joined names its map, and the maps are added here, once. And c8 would merge file
 * after file into the growing sum, for two minutes; here many are merged at once.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { filesBelow, inRoot } from '../set-up/index.mjs'
import { JOINED } from '../set-up/paths.mjs'

const AT_ONCE = 64
const IS_COUNTED = /\/(dist|joined)\/(?!.*\.test\.)/
/** One that was ended while it wrote leaves a part of a file. */
const isWhole = (text) => text.endsWith('}')

const { mergeProcessCovs } = createRequire(inRoot('node_modules', 'c8', 'index.js'))('@bcoe/v8-coverage')

/** Write the sum of all files of a folder, with maps. */
function writeSum(folder, path) {
  let sum = { result: [] }
  const files = readdirSync(folder).map((name) => join(folder, name))
  while (files.length > 0) {
    const texts = files.splice(0, AT_ONCE).map((file) => readFileSync(file, 'utf8'))
    const all = texts.filter(isWhole).map((text) => JSON.parse(text))
    const counted = all.map(({ result }) => ({ result: result.filter(({ url }) => IS_COUNTED.test(url)) }))
    sum = mergeProcessCovs([sum, ...counted])
  }
  const maps = [inRoot('dist'), JOINED].flatMap(mapsBelow).map(mapOf)
  writeFileSync(path, JSON.stringify({ ...sum, 'source-map-cache': Object.fromEntries(maps) }))
}

function mapsBelow(folder) {
  return filesBelow(folder, (path) => path.endsWith('.js.map'))
}

/** As Node writes it: by the URL of the module, with the URLs of its sources. */
function mapOf(path) {
  const { href } = pathToFileURL(path)
  const data = JSON.parse(readFileSync(path, 'utf8'))
  const sources = data.sources.map((source) => new URL(source, href).href)
  return [href.slice(0, -'.map'.length), { data: { ...data, sources, sourceRoot: '' } }]
}

writeSum(process.argv[2], process.argv[3])
