/**
 * The processes of the table `service`: the server by its command, and clients that report as JSON.
 *
 * A client that saw a wrong answer, or none, ends the table: a fast wrong answer is worth nothing.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { BenchError } from '../../harness/errors.ts'
import { BENCH_FOLDER, DIST_FOLDER, PACKAGE_FOLDER } from '../../harness/place.ts'
import type { ClientPlan, ClientReport } from './client.ts'

/** The routes with the heavy stage. */
export type HeavyRoute = Exclude<ClientPlan['route'], 'hello'>

const NAME = 'skein serve'
const START_MS_MAX = 20_000

/** Start the server, warm both its heavy routes up, let `body` measure, end it. */
export async function withService(port: number, body: () => Promise<void>): Promise<void> {
  const command = [`${PACKAGE_FOLDER}/dist/cli/main.js`, 'serve', `${DIST_FOLDER}/contenders/service/app.js`]
  const server = spawn(process.execPath, [...command, '--port', String(port)], {
    cwd: BENCH_FOLDER,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const gone = once(server, 'exit')
  const late = setTimeout(() => server.kill('SIGKILL'), START_MS_MAX)
  try {
    const said = await Promise.race([once(server.stdout, 'data'), gone.then(() => undefined)])
    clearTimeout(late)
    if (said === undefined)
      throw new BenchError('CONTENDER_DIED', {
        contender: NAME,
        why: 'it did not start',
      })
    for (const route of ['zone', 'inline'] as const)
      await ask({ port, route, connections: 4, seconds: 1, perSecond: 0 })
    await body()
  } finally {
    clearTimeout(late)
    server.kill('SIGKILL')
    await gone
  }
}

/**
 * Run one client to its end.
 * @throws {BenchError} `WRONG_ANSWER` when an answer was not the known one; `CONTENDER_DIED` when none came.
 */
export async function ask(plan: ClientPlan): Promise<ClientReport> {
  const words = [`${DIST_FOLDER}/tables/service/client.js`, JSON.stringify(plan)]
  const { stdout } = await promisify(execFile)(process.execPath, words)
  const report = JSON.parse(stdout) as ClientReport
  if (report.wrong > 0) {
    const got = `${report.wrong} wrong or missing of ${report.answers}`
    throw new BenchError('WRONG_ANSWER', {
      contender: NAME,
      work: plan.route,
      got,
      expected: 'none',
    })
  }
  if (report.answers === 0)
    throw new BenchError('CONTENDER_DIED', {
      contender: NAME,
      why: 'no answers',
    })
  return report
}
