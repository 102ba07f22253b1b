/**
 * The server of the table `service`, by its command, as a user starts it.
 *
 * Its heavy routes are warm when the table begins, or the first slice would measure a compiler.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { BenchError } from '../../harness/errors.ts'
import { BENCH_FOLDER, DIST_FOLDER, PACKAGE_FOLDER } from '../../harness/paths.ts'
import { ask } from './client.ts'

const START_MS_MAX = 20_000

/** Start the server, warm both its heavy routes up with `client`, let `body` measure, end it. */
export async function withService(
  port: number,
  client: string,
  body: (pid: number) => Promise<void>,
): Promise<void> {
  const command = [`${PACKAGE_FOLDER}/lib/cli/main.js`, 'serve', `${DIST_FOLDER}/contenders/service/app.js`]
  const server = spawn(process.execPath, [...command, '--port', String(port)], {
    cwd: BENCH_FOLDER,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(server, 'exit')
  const late = setTimeout(() => server.kill('SIGKILL'), START_MS_MAX)
  try {
    const first = await Promise.race([once(server.stdout, 'data'), exited.then(() => undefined)])
    clearTimeout(late)
    if (first === undefined) {
      throw new BenchError('CONTENDER_DIED', { contender: 'corespun serve', why: 'it did not start' })
    }
    for (const route of ['zone', 'inline'] as const)
      await ask(client, { port, route, connections: 4, seconds: 1, perSecond: 0 })
    await body(server.pid!)
  } finally {
    clearTimeout(late)
    server.kill('SIGKILL')
    await exited
  }
}
