/**
 * `npm run test:h2spec`: the cases of h2spec, an independent client of RFC 9113 and RFC 7541, over TLS.
 *
 * It is compiled from its module, which scripts/h2spec pins; without Go the step is skipped.
 */
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { inRoot, MEMORY, must, run } from '../set-up/index.mjs'
import { entry } from './report.mjs'

const MODULE = 'github.com/summerwind/h2spec/cmd/h2spec'
const SECONDS_MAX = 300
const RESPONSE_MS = 30

/** @param {import('./report.mjs').Report} report @returns {Promise<number>} 0 when every case passed. */
export async function h2spec(report) {
  const { code: missing } = await run('go', ['version'])
  if (missing !== 0) {
    console.log('skipped: h2spec is compiled by Go, and there is no `go` on the PATH')
    return 0
  }
  // Go itself sees whether it is to be compiled.
  const program = join(MEMORY, 'h2spec-program')
  await must('Compiling h2spec', 'go', ['build', '-o', program, MODULE], { cwd: inRoot('scripts', 'h2spec') })
  const { developmentTls, serve } = await import(inRoot('dist', 'http', 'index.js'))
  const server = await serve({
    // It sends bodies to any path. A response that overtakes the frames behind its request closes the stream
    // that they are about.
    fetch: async (request) => {
      const { byteLength } = await request.arrayBuffer()
      await setTimeout(RESPONSE_MS)
      return new Response(`${byteLength} bytes`)
    },
    host: '127.0.0.1',
    port: 0,
    tls: await developmentTls(),
    quiet: true,
  })
  try {
    const args = ['--host', '127.0.0.1', '--port', String(server.port), '--tls', '--insecure']
    const { code, output } = await run(program, args, { secondsMax: SECONDS_MAX })
    const failed = /^Failures:[^]*/m.exec(output)?.[0] ?? ''
    const text = `${failed}${/^\d+ tests, .*$/m.exec(output)?.[0] ?? output}`
    console.log(text)
    if (code === 0 && failed === '') return 0
    report.failures.push(`h2spec\n${entry('cases', text)}`)
    return 1
  } finally {
    await server.close()
  }
}
