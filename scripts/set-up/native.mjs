/**
 * The Rust core, compiled by cargo and put to dist/native/corespun.<platform>.node, and to those of
 * lib and joined.
 *
 * cargo decides whether anything is to be compiled. A core that differs replaces the old one by a rename: a
 * process that has loaded the old one keeps it; writing into the file would change its memory.
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { JOINED, LIB, NATIVE } from './paths.mjs'
import { run } from './run.mjs'
import { Stop } from './stop.mjs'

const BUILD = ['build', '--release', '--locked', '--quiet', '--package', 'corespun-node']
/** Of cargo: what it has compiled as JSON, and errors as text. */
export const MESSAGES = '--message-format=json-render-diagnostics'

/**
 * Compile the core, which also prints what src has of it.
 * @returns {Promise<string>} The library; cargo's settings may put it anywhere.
 * @throws {Stop} With the compiler's words, or with what to install when there is no C linker.
 */
export async function compileCore() {
  const isCore = ({ target }) => target?.name === 'corespun_node' && target.kind[0] === 'cdylib'
  return (await compile()).find(isCore).filenames[0]
}

/** Copy the core to where it is loaded from. The TypeScript, which names the platform, is compiled before. */
export async function placeCore({ 'native core': built }) {
  const { currentHost, tripleOf } = await import(pathToFileURL(join(NATIVE, 'load.js')).href)
  for (const folder of [NATIVE, join(LIB, 'native'), join(JOINED, 'native')])
    put(built, join(folder, `corespun.${tripleOf(currentHost())}.node`))
}

function put(built, path) {
  if (existsSync(path) && readFileSync(path).equals(readFileSync(built))) return
  mkdirSync(dirname(path), { recursive: true })
  const draft = `${path}.${process.pid}`
  copyFileSync(built, draft)
  renameSync(draft, path)
}

/**
 * Compile the core of this machine, if it is not compiled.
 * @returns {Promise<object[]>} cargo's messages: one for each crate, also if it was compiled before.
 * @throws {Stop} With the compiler's words, or with what to install when there is no C linker.
 */
export async function compile() {
  const { code, output } = await run('cargo', [...BUILD, MESSAGES])
  if (code === 0) return messagesOf(output)
  if (/linker `.*` not found/.test(output))
    throw new Stop('Rust found no C linker: install gcc or clang (Debian: `apt-get install gcc`).')
  const words = output.split('\n').filter((line) => !line.startsWith('{"reason"'))
  throw new Stop(
    `${words.join('\n')}\nCompiling the native core failed: \`cargo ${BUILD.join(' ')}\` ended with ${code}.`,
  )
}

/** Messages of cargo about what it has compiled, among what else a build prints. @param {string} output */
export function messagesOf(output) {
  const lines = output.split('\n').filter((line) => line.startsWith('{'))
  return lines.map((line) => JSON.parse(line))
}
