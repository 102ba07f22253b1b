/**
 * The Rust core, compiled to dist/native/skein.<platform>.node.
 *
 * The napi command builds into target/ and the file is then renamed into place: a process that has the old
 * one loaded keeps it, where writing into the file would pull the memory from under it.
 */
import { copyFileSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { inRoot, NATIVE } from './place.mjs'
import { must } from './run.mjs'
import { filesBelow, forget, hashOf, isCurrent, remember } from './stamps.mjs'
import { Stop } from './stop.mjs'

const STAMP = 'native'
const BUILT = inRoot('target', 'napi')
const isCore = (name) => /^skein\..*\.node$/.test(name)

/**
 * The step.
 * @param {string} cargo Version of cargo: another compiler means another core.
 */
export function nativeStep(cargo) {
  const inputs = hashOf(sources(), [cargo, process.platform, process.arch])
  return {
    name: 'native core',
    isCurrent: () => isCurrent(STAMP, inputs, outputs),
    async work() {
      forget(STAMP)
      await compile()
      place()
      remember(STAMP, inputs, outputs())
    },
  }
}

function sources() {
  const wanted = (path) => !path.endsWith('.md')
  const roots = ['crates', 'Cargo.toml', 'Cargo.lock', '.cargo', 'rust-toolchain.toml']
  return roots.flatMap((name) => filesBelow(inRoot(name), wanted))
}

/** No file, no hash: the step then runs. @throws {Stop} When there is none. */
function outputs() {
  const cores = filesBelow(NATIVE, (path) => path.endsWith('.node'))
  if (cores.length === 0) throw new Stop('no native core was built')
  return hashOf(cores)
}

async function compile() {
  const napi = inRoot('node_modules', '@napi-rs', 'cli', 'dist', 'cli.js')
  rmSync(BUILT, { recursive: true, force: true })
  const flags = ['--platform', '--release', '--no-js', '-p', 'skein-node', '--output-dir', BUILT]
  try {
    await must('Compiling the native core', process.execPath, [napi, 'build', ...flags])
  } catch (error) {
    if (!/linker `.*` not found/.test(error.message)) throw error
    throw new Stop('Rust found no C linker: install gcc or clang (Debian: `apt-get install gcc`).')
  }
}

function place() {
  mkdirSync(NATIVE, { recursive: true })
  for (const name of readdirSync(BUILT).filter(isCore)) {
    const draft = join(NATIVE, `${name}.${process.pid}`)
    copyFileSync(join(BUILT, name), draft)
    renameSync(draft, join(NATIVE, name))
  }
}
