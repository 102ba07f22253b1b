/**
 * The cases of h2spec, an independent client of RFC 9113 and RFC 7541, over TLS (`npm run test:h2spec`).
 *
 * It is compiled from its module, which the folder h2spec pins; without Go the test is skipped.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { developmentTls, serve } from '../../dist/http/index.js'
import { inRoot, MEMORY, must, run } from '../../scripts/set-up/index.mjs'

const MODULE = 'github.com/summerwind/h2spec/cmd/h2spec'
const SECONDS_MAX = 300
const RESPONSE_MS = 30

const skip = spawnSync('go', ['version']).status !== 0 && 'h2spec is compiled by Go: no `go` on the PATH'

test('the native core passes every case of h2spec', { skip }, async () => {
  const program = join(MEMORY, 'h2spec-program')
  // Go itself sees whether it is to be compiled.
  const build = ['build', '-o', program, MODULE]
  await must('Compiling h2spec', 'go', build, { cwd: inRoot('test', 'http', 'h2spec') })
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
    assert.doesNotMatch(output, /^Failures:/m)
    assert.equal(code, 0, output)
    assert.match(output, /^\d+ tests, [1-9]\d* passed/m)
  } finally {
    await server.close()
  }
})
