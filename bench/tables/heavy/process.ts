/**
 * The servers of table `heavy`: a process for each library and way to call it, in the project's folder.
 *
 * Each is ready when its heavy route has responded several times, so that no slice measures a compiler.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { DIST_FOLDER, PACKAGE_FOLDER } from '../../harness/paths.ts'

/** Where the library is called. */
export const MODES = ['in node:http', 'in a zone of threads', 'in a zone of processes'] as const
const WORDS = { [MODES[0]]: 'inline', [MODES[1]]: 'thread', [MODES[2]]: 'process' } as const

/** One server that responds. */
export interface Heavy {
  readonly port: number
  /** The response of its heavy route. */
  readonly expected: string
  end(): Promise<void>
}

/** Start a server; `undefined` if it ended before it responded, as where a Node lacks the library. */
export async function startHeavy(
  folder: string,
  library: string,
  mode: (typeof MODES)[number],
): Promise<Heavy | undefined> {
  const calls = `${PACKAGE_FOLDER}/test/heavy/calls.mjs`
  const args = [`${DIST_FOLDER}/contenders/heavy/server.js`, folder, calls, library, WORDS[mode]]
  const types = process.features.typescript ? [] : ['--import', 'corespun/typescript']
  const server = spawn(process.execPath, ['--no-warnings', ...types, ...args], {
    cwd: folder,
    env: { ...process.env, NODE_ENV: 'production', ORT_DISABLE_TELEMETRY: '1' },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const exited = once(server, 'exit')
  const first = await Promise.race([once(server.stdout, 'data'), exited.then(() => undefined)])
  if (first === undefined) return undefined
  return {
    ...(JSON.parse(String(first[0])) as { port: number; expected: string }),
    async end() {
      server.kill('SIGKILL')
      await exited
    },
  }
}
