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
import { JOINED, LIB, MEMORY, NATIVE } from './paths.mjs'
import { run } from './run.mjs'
import { Stop } from './stop.mjs'

/** Cargo.toml has what the two profiles are; processes that a script starts have the same one. */
const profile = () => process.env.CORESPUN_PROFILE ?? 'release'
/** Of cargo: what it has compiled as JSON, and errors as text. */
export const MESSAGES = '--message-format=json-render-diagnostics'

/**
 * Compile the core, which also prints what src has of it.
 * @returns {Promise<{path: string, isNew: boolean}>} The library; cargo's settings may put it anywhere.
 * @throws {Stop} With the compiler's words, or with what to install when there is no C linker.
 */
export async function compileCore(progress) {
  return coreOf(await compile(profile(), progress))
}

function coreOf(messages) {
  const isCore = ({ target }) => target?.name === 'corespun_node' && target.kind[0] === 'cdylib'
  const { filenames, fresh } = messages.find(isCore)
  return { path: filenames[0], isNew: !fresh }
}

/** Compile the core as users get it. @returns {Promise<string>} A folder that has it. */
export async function releasedCore() {
  const folder = join(MEMORY, 'core')
  put(coreOf(await compile()).path, join(folder, await fileOfCore()))
  return folder
}

async function fileOfCore() {
  const { currentHost, tripleOf } = await import(pathToFileURL(join(NATIVE, 'load.js')).href)
  return `corespun.${tripleOf(currentHost())}.node`
}

/** Copy the core to where it is loaded from. The TypeScript, which names the platform, is compiled before. */
export async function placeCore({ path }) {
  const file = await fileOfCore()
  for (const folder of [NATIVE, join(LIB, 'native'), join(JOINED, 'native')]) put(path, join(folder, file))
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
 * @param {string} [name] Of the profile.
 * @param {(done: string) => void} [progress] Receives how many crates are compiled.
 * @returns {Promise<object[]>} cargo's messages: one for each crate, also if it was compiled before.
 * @throws {Stop} With the compiler's words, or with what to install when there is no C linker.
 */
export async function compile(name = 'release', progress = () => {}) {
  const build = ['build', '--profile', name, '--locked', '--quiet', '--package', 'corespun-node']
  let count = 0
  const onText = (text) => {
    count += text.split('"reason":"compiler-artifact"').length - 1
    progress(`${count} crates`)
  }
  const { code, output } = await run('cargo', [...build, MESSAGES], { onText })
  if (code === 0) return messagesOf(output)
  if (/linker `.*` not found/.test(output))
    throw new Stop('Rust found no C linker: install gcc or clang (Debian: `apt-get install gcc`).')
  const words = output.split('\n').filter((line) => !line.startsWith('{"reason"'))
  throw new Stop(
    `${words.join('\n')}\nCompiling the native core failed: \`cargo ${build.join(' ')}\` ended with ${code}.`,
  )
}

/** Messages of cargo about what it has compiled, among what else a build prints. */
export function messagesOf(output) {
  const lines = output.split('\n').filter((line) => line.startsWith('{'))
  return lines.map((line) => JSON.parse(line))
}
