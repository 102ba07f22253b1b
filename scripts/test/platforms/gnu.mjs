/**
 * Linux on x64 with glibc: the packed core, which zig links for an old glibc, under the Node that runs this.
 *
 * The suite runs with a core of the host's linker, so that one runs in no other step.
 */
import { run } from '../../set-up/index.mjs'

/** Where nothing is emulated: a file for each part that calls the core, those that start processes too. */
export const FILES = [
  'native/load',
  'zone/calls',
  'zone/ground/uncaught',
  'store/store',
  'store/file',
  'store/threads',
  'sync/sync',
  'transport/values',
  'transport/functions/functions',
  'transport/functions/functions-threads',
  'arrow/api/arrow',
  'arrow/fork',
  'fiber/core/exit',
  'fiber/remote/on',
  'http/server',
  'http/sharing',
  'http/websocket/websocket',
  'cli/run/output',
]

/** @type {import('./main.mjs').Runner} */
export const linuxGnu = {
  triple: 'linux-x64-gnu',
  node: process.versions.node,
  files: FILES,
  start: async (core) => ({
    test: (path, secondsMax) => {
      const env = { ...process.env, CORESPUN_NATIVE_PATH: core }
      return run(process.execPath, [path], { env, secondsMax })
    },
    end: async () => {},
  }),
}
