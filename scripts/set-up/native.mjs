/**
 * The Rust core, compiled by cargo and put to dist/native/corespun.<platform>.node, and to lib/native.
 *
 * cargo decides whether anything is to be compiled. A core that differs replaces the old one by a rename: a
 * process that has loaded the old one keeps it; writing into the file would change its memory.
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { LIB, NATIVE } from './paths.mjs'
import { run } from './run.mjs'
import { Stop } from './stop.mjs'

const BUILD = ['build', '--release', '--locked', '--quiet', '--package', 'corespun-node']

/**
 * Compile the core and copy it to where it is loaded from. The TypeScript, which names the platform, is
 * compiled before.
 * @throws {Stop} With the compiler's words, or with what to install when there is no C linker.
 */
export async function compileCore() {
  const built = await compile()
  const { currentHost, tripleOf } = await import(pathToFileURL(join(NATIVE, 'load.js')).href)
  for (const folder of [NATIVE, join(LIB, 'native')])
    put(built, join(folder, `corespun.${tripleOf(currentHost())}.node`))
}

function put(built, path) {
  if (existsSync(path) && readFileSync(path).equals(readFileSync(built))) return
  mkdirSync(dirname(path), { recursive: true })
  const draft = `${path}.${process.pid}`
  copyFileSync(built, draft)
  renameSync(draft, path)
}

/** @returns {Promise<string>} The library: cargo's settings may put it anywhere; cargo prints its path. */
async function compile() {
  const { code, output } = await run('cargo', [...BUILD, '--message-format=json-render-diagnostics'])
  const lines = output.split('\n')
  if (code === 0) {
    const made = lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line))
    return made.find(({ target }) => target?.name === 'corespun_node' && target.kind[0] === 'cdylib')
      .filenames[0]
  }
  if (/linker `.*` not found/.test(output))
    throw new Stop('Rust found no C linker: install gcc or clang (Debian: `apt-get install gcc`).')
  const words = lines.filter((line) => !line.startsWith('{"reason"')).join('\n')
  throw new Stop(
    `${words}\nCompiling the native core failed: \`cargo ${BUILD.join(' ')}\` ended with ${code}.`,
  )
}
