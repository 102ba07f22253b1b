/**
 * `corespun stacks` and the control sockets of the commands, as processes: one whose main thread and worker
 * are both in endless loops, in TypeScript; a server; what switches the sockets off.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { corespun, folder, start, until } from './corespun.mjs'

const files = mkdtempSync(join(tmpdir(), 'corespun-look-'))
after(() => rmSync(files, { recursive: true }))
const env = { XDG_RUNTIME_DIR: files }
const sockets = join(files, 'corespun')
const skip = process.platform === 'win32'
const timeout = 120_000

const source = readFileSync(join(folder, 'modules/stuck.mts'), 'utf8').split('\n')
const lineOf = (text) => 1 + source.findIndex((line) => line.includes(text))

/** Wait until a process has its socket. */
async function observed(name) {
  const has = () => existsSync(sockets) && readdirSync(sockets).some((file) => file.includes(`.${name}.`))
  while (!has()) await pause(20)
}

test('stacks of a process whose main thread and worker never return', { skip, timeout }, async () => {
  const options = { cwd: folder, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] }
  const child = spawn(process.execPath, ['--import', 'corespun/typescript', 'modules/stuck.mts'], options)
  try {
    await once(child.stdout, 'data')
    const text = await corespun(['stacks', 'stuck'], '', { env })
    assert.equal(text.err, '')
    assert.equal(text.code, 0)
    const at = (name) => new RegExp(`at .*stuck\\.mts:${lineOf(name)}:\\d+\\)?\n`)
    // Node 20 has a thread of its own for the loader's hooks.
    const [, main, ...others] = text.out.split(/^ {2}thread \d+, /m)
    const worker = others.find((each) => each.startsWith('worker cpu/0'))
    assert.match(main, at('// main'))
    assert.match(worker, at('// worker'))
    assert.match(worker, /task work \(file:.*stuck\.mts:\d+\), for \d+\.\d+ s, called by the main thread\n/)
    const json = await corespun(['stacks', String(child.pid), '--json'], '', { env })
    const [{ pid, name, tasks }] = JSON.parse(json.out)
    assert.deepEqual([pid, name, tasks.length], [child.pid, 'stuck', 1])
  } finally {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  const { code, err } = await corespun(['stacks', 'stuck'], '', { env })
  assert.match(err, /^corespun: no process stuck with a control socket; there are: not any\n$/)
  assert.equal(code, 2)
  assert.deepEqual(readdirSync(sockets), [])
})

test('a server has a socket until it ends, and --allow-control drains it', { skip, timeout }, async () => {
  const server = start(['serve', 'modules/hello.mjs', '-p', '0', '-w', '1', '--allow-control'], { env })
  await until(server.child.stdout, () => server.out.includes('serving'))
  await observed('hello')
  const { out, code } = await corespun(['stacks', 'hello'], '', { env })
  assert.match(out, /^process \d+ \(hello\)\n {2}thread 0, the main thread\n/)
  assert.match(out, /worker corespun serve\/0\n/)
  assert.equal(code, 0)
  const { ask, findProcess } = await import('../../dist/observe/internal.js')
  process.env.XDG_RUNTIME_DIR = files
  const [socket] = await findProcess('hello')
  const params = { action: 'drain' }
  assert.equal(await ask(socket, 'control', params, { timeoutMs: 30_000 }), null)
  assert.equal((await server.ended).code, 0)
  assert.deepEqual(readdirSync(sockets), [])
})

for (const [what, words, more] of [
  ['--no-observe', ['--no-observe'], {}],
  ['CORESPUN_OBSERVE=off', [], { CORESPUN_OBSERVE: 'off' }],
])
  test(`${what} leaves the socket closed`, { skip, timeout }, async () => {
    const server = start(['serve', 'modules/hello.mjs', '-p', '0', '-w', '1', ...words], {
      env: { ...env, ...more },
    })
    await until(server.child.stdout, () => server.out.includes('serving'))
    // A server that is observed, and was started later, has its socket by now.
    const other = start(['serve', 'modules/hello.mjs', '-p', '0', '-w', '1'], { env })
    await observed('hello')
    assert.deepEqual(
      readdirSync(sockets).map((file) => file.split('.')[0]),
      [String(other.child.pid)],
    )
    for (const each of [server, other]) each.child.kill('SIGTERM')
    for (const each of [server, other]) assert.equal((await each.ended).code, 0)
  })

for (const [words, problem] of [
  [['stacks'], /name the process, by its pid or its name/],
  [['stacks', 'a', 'b'], /one process is looked into, not also b/],
  [['stacks', 'a', '--jsn'], /did you mean --json\?/],
  [['profile', 'a', '--format', 'svg'], /cpuprofile or speedscope, not "svg"/],
  [['profile', 'a', '--seconds', '0'], /--seconds takes a whole number from 1 to 600/],
])
  test(`wrong arguments: ${words.join(' ')}`, async () => {
    const { code, err } = await corespun(words, '', { env })
    assert.match(err, problem)
    assert.match(err, new RegExp(`corespun ${words[0]} --help`))
    assert.equal(code, 2)
  })
