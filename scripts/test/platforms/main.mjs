/**
 * The cores that zig links on Linux x64, each with a Node of its platform: the one that runs this, one for
 * musl, or one under an emulator.
 *
 * Emulation is slow and not complete, so each runner names the test files that run there. Nothing is
 * installed: Node, what it needs and the emulator are unpacked below .set-up.
 */
import { join } from 'node:path'
import { compileCores } from '../../cross/main.mjs'
import { inRoot } from '../../set-up/index.mjs'
import { linuxGnu } from './gnu.mjs'
import { linuxMusl } from './musl.mjs'
import { linuxArm64 } from './qemu.mjs'
import { windowsX64 } from './wine.mjs'

/**
 * @typedef {object} Runner
 * @property {string} triple Of the core.
 * @property {string} node The version of Node that runs there.
 * @property {string[]} files Test files below dist, without their ending.
 * @property {(core: string) => Promise<Started>} start Download it once; `core` is the path of a .node file.
 *
 * @typedef {object} Started
 * @property {(path: string, secondsMax: number) => Promise<{code: number, output: string}>} test Run a file.
 * @property {() => Promise<unknown>} end Stop what it has started.
 */

const RUNNERS = [linuxGnu, ...linuxMusl, linuxArm64, ...windowsX64]
/** Of one file. */
const SECONDS_MAX = 300

/**
 * Run the selections; elsewhere than on Linux x64 they are skipped.
 * @param {string[]} words Parts of names of test files or platforms; all, if none is named.
 * @returns {Promise<number>} 0 when all passed.
 * @throws {Stop} When the compiler, Node or an emulator cannot be downloaded.
 */
export async function otherPlatforms(words) {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    const { platform, arch } = process
    console.log(`skipped: compiler and emulators are packages for Linux x64, and this is ${platform} ${arch}`)
    return 0
  }
  const isChosen = (name) => words.length === 0 || words.some((word) => name.includes(word))
  let failed = 0
  for (const { triple, node, files, start } of RUNNERS) {
    const platform = `${triple}, Node ${node}`
    const chosen = files.filter((name) => isChosen(`${platform} ${name}`))
    if (chosen.length === 0) continue
    const cores = await compileCores(console.log, [triple])
    const { test, end } = await start(join(cores, `corespun.${triple}.node`))
    for (const name of chosen) failed += await testFile(platform, name, test)
    await end()
  }
  return failed === 0 ? 0 : 1
}

/** 1 when it fails, with what it has printed. */
async function testFile(platform, name, test) {
  const startedMs = performance.now()
  const { code, output } = await test(inRoot('dist', `${name}.test.js`), SECONDS_MAX)
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(0)
  console.log(`${code === 0 ? 'pass' : 'FAIL'}  ${platform}  ${name}, ${seconds} s`)
  if (code === 0) return 0
  console.log(output)
  return 1
}
