/**
 * The leak check on planted leaks: each kind fails its file and is named, and a clean file passes.
 *
 * Every case is a test file of its own, run by Node's runner as `npm test` runs them.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

const LEAKS = new URL('./leaks.mjs', import.meta.url).href
const folder = mkdtempSync(join(tmpdir(), 'corespun-leaks-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const HEAD = `
import { after, test } from 'node:test'
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import { Worker } from 'node:worker_threads'
const forever = () => new Worker('setInterval(() => {}, 1000)', { eval: true })
const online = (worker = forever()) => new Promise((resolve) => worker.once('online', () => resolve(worker)))
`

/** Run a test file with this body; `words` must be in its leak lines, none means it must pass. */
function check(name, body, words) {
  test(name, () => {
    const file = join(folder, `${name.replaceAll(/\W+/g, '-')}.test.mjs`)
    writeFileSync(file, `${HEAD}test('t', async () => {\n${body}\n})\n`)
    const { NODE_TEST_CONTEXT: _, ...rest } = process.env
    const env = words === undefined ? rest : { ...rest, CORESPUN_LEAK_PATIENCE_MS: '1000' }
    const args = ['--import', LEAKS, '--test', '--test-reporter=spec', file]
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env })
    const leaks = (stdout + stderr).split('\n').filter((line) => line.includes('leak: '))
    if (words === undefined) return assert.deepEqual([status, leaks], [0, []], stdout + stderr)
    assert.equal(status, 1, stdout + stderr)
    assert.match(leaks.join('\n'), words)
  })
}

check('a clean file', "await fs.promises.readFile('/etc/hostname')")
check('a worker that is ended', 'await (await online()).terminate()')
check('a worker that a hook ends', 'const w = await online(); after(() => w.terminate())')
check('a file that is closed', "fs.closeSync(fs.openSync('/etc/passwd'))")
check('a timer', 'setInterval(() => {}, 1000)', /still alive 1 s .* Timeout/)
check('a worker that holds the process', 'await online()', /still alive 1 s/)
check('a worker that does not hold it', '(await online()).unref()', /1 threads more/)
const turn = 'await new Promise((r) => setTimeout(r, 50))'
check('a server', `net.createServer().listen(0).unref(); ${turn}`, /left open: socket/)
check('a file left open', "fs.openSync('/etc/passwd')", /left open: \/etc\/passwd/)
check('a temporary file', "fs.mkdtempSync(os.tmpdir() + '/corespun-x-')", /temporary folder: corespun-x-/)
const sleep = "spawn('sleep', ['4'], { stdio: 'ignore', detached: true }).unref()"
check('a child', sleep, /child process \d+: sleep 4/)
check('a child that has ended, or is about to', "spawn('sleep', ['0.2'], { stdio: 'ignore' }).unref()")
