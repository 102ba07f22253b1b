/**
 * A server that npm has started ends with npm, whatever ends that: a signal that it does not pass on, or one
 * that it never receives. The shell between them outlives it.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { npm } from '../../scripts/set-up/index.mjs'
import { program, skipOf, until } from './corespun.mjs'

const folder = mkdtempSync(join(tmpdir(), 'corespun-npm-'))
after(() => rmSync(folder, { recursive: true }))

const serve = `${JSON.stringify(process.execPath)} ./corespun serve app.mjs --port 0 --workers 1`
const scripts = { start: serve, list: `echo begun; ${serve}; echo ended` }
writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'project', scripts }))
writeFileSync(join(folder, 'app.mjs'), "export const routes = { '/': 'x' }")
symlinkSync(program, join(folder, 'corespun'))
mkdirSync(join(folder, 'node_modules', '.bin'), { recursive: true })
writeFileSync(join(folder, 'node_modules', '.bin', 'corespun'), `#!/bin/sh\nexec ${serve}\n`, { mode: 0o755 })

const WAYS = { exec: ['exec', '--', 'corespun'], start: ['start'], list: ['run', 'list'] }
const rows = Object.keys(WAYS).flatMap((way) =>
  ['SIGTERM', 'SIGHUP', 'SIGKILL'].map((signal) => [way, signal]),
)

for (const [row, [way, signal]] of rows.entries()) {
  const options = { timeout: 60_000, skip: process.platform !== 'linux' || skipOf(row) }
  test(`${signal} to npm ${WAYS[way].join(' ')} ends what it serves`, options, async () => {
    const { program, args } = npm()
    const child = spawn(program, [...args, ...WAYS[way]], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    let out = ''
    child.stdout.setEncoding('utf8').on('data', (text) => (out += text))
    await until(child.stdout, () => /http:\S+/.test(out))
    const [url] = /http:\S+/.exec(out)
    assert.equal(await (await fetch(url, { headers: { connection: 'close' } })).text(), 'x')
    const closed = once(child, 'close') // its output is also that of the server
    child.kill(signal)
    assert.deepEqual(await closed, [null, signal])
    await assert.rejects(fetch(url))
  })
}
