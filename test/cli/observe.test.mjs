/**
 * `corespun stacks` and the control sockets of the commands, as processes: one whose main thread and worker
 * are both in endless loops, in TypeScript; a server; one that is profiled; what switches the sockets off.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { corespun, folder, program, start, until } from './corespun.mjs'

const files = mkdtempSync(join(tmpdir(), 'corespun-look-'))
after(() => rmSync(files, { recursive: true }))
const env = { XDG_RUNTIME_DIR: files }
const sockets = join(files, 'corespun')
const skip = process.platform === 'win32'
const timeout = 120_000

const source = readFileSync(join(folder, 'modules/stuck.mts'), 'utf8').split('\n')
const lineOf = (text) => 1 + source.findIndex((line) => line.includes(text))

/** Wait until a process has its socket. Returns all that there are. */
async function observed(name, { XDG_RUNTIME_DIR } = env) {
  const folder = join(XDG_RUNTIME_DIR, 'corespun')
  const found = () => (existsSync(folder) ? readdirSync(folder) : [])
  while (!found().some((file) => file.includes(`.${name}.`))) await pause(20)
  return found()
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
    const seen = await corespun(['top', 'stuck', '--every', '50ms'], '', { env })
    assert.deepEqual([seen.err, seen.code], ['', 0])
    assert.match(seen.out, new RegExp(`^stuck \\(${child.pid}\\) on .*\n[^]*\n {2}cpu/0 +work +\\d+`))
    const json = await corespun(['stacks', String(child.pid), '--json'], '', { env })
    const [{ pid, name, tasks }] = JSON.parse(json.out)
    assert.deepEqual([pid, name, tasks.length], [child.pid, 'stuck', 1])
    const { ask, findProcess } = await import('../../dist/observe/internal.js')
    process.env.XDG_RUNTIME_DIR = files
    const [socket] = await findProcess('stuck')
    assert.equal((await ask(socket, 'info', {}, { timeoutMs: 30_000 })).pid, child.pid)
  } finally {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  const { code, err } = await corespun(['stacks', 'stuck'], '', { env })
  assert.match(
    err,
    /^corespun: no process named stuck has a control socket; corespun serve, run and host open one after/,
  )
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

test(
  'profile writes one file of all threads and processes, and Ctrl-C ends it early',
  { skip, timeout },
  async () => {
    const options = { cwd: folder, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] }
    const child = spawn(process.execPath, ['modules/busy.mjs'], options)
    try {
      await once(child.stdout, 'data')
      const file = join(files, 'early.cpuprofile')
      const early = start(['profile', 'busy', '--seconds', '600', '--output', file], { env })
      await until(early.child.stderr, () => early.err.includes('Ctrl-C ends it early\n'))
      // Some tasks, so that there are samples of each.
      let printed = ''
      child.stdout.on('data', (chunk) => (printed += chunk))
      const hasRun = (name) => printed.split(`${name}\n`).length > 4
      await until(child.stdout, () => hasRun('threads') && hasRun('processes'))
      early.child.kill('SIGINT')
      const { code, out, err: shares } = await early.ended
      assert.equal(out, `${file}\n`)
      assert.match(
        shares,
        /\n[\d.]+ s of CPU time, [\d.]+ % of it with a label\n {2} *[\d.]+ % {2}\w+ work\n/,
      )
      assert.equal(code, 0)
      const { nodes } = JSON.parse(readFileSync(file, 'utf8'))
      const names = nodes.map(({ callFrame }) => callFrame.functionName)
      for (const name of ['[threads work]', '[processes work]', 'burn']) assert.ok(names.includes(name), name)
      const threads = names.filter((name) => name.startsWith('thread '))
      for (const name of [
        /^thread 0, the main thread$/,
        /^thread \d+, threads\/0$/,
        /process \d+, the main thread$/,
      ])
        assert.ok(
          threads.some((each) => name.test(each)),
          `${name}: ${threads}`,
        )

      const stacks = await corespun(['stacks', 'busy'], '', { env })
      assert.match(stacks.out, new RegExp(`^process ${child.pid} \\(busy\\)\n`))
      assert.match(
        stacks.out,
        new RegExp(`\nprocess (?!${child.pid})\\d+ \\(busy\\).*\n(.*\n)*.*worker processes/0\n`),
      )
      const words = ['profile', String(child.pid), '-s', '1']
      const lanes = await corespun(
        [...words, '--format', 'speedscope', '-o', join(files, 'lanes.json')],
        '',
        { env },
      )
      assert.deepEqual([lanes.code, lanes.err.includes('corespun: ')], [0, false], lanes.err)
      assert.ok(JSON.parse(readFileSync(join(files, 'lanes.json'), 'utf8')).profiles.length >= 3)
      const heap = await corespun([...words, '--heap', '-o', join(files, 'x.heapprofile')], '', { env })
      assert.deepEqual([heap.code, heap.err], [0, 'profiling for 1 s; Ctrl-C ends it early\n'])
      assert.match(
        readFileSync(join(files, 'x.heapprofile'), 'utf8'),
        /"functionName":"thread 0, the main thread"/,
      )
      // Refused before the ten minutes, not behind them.
      const nowhere = join(files, 'no', 'file')
      const refused = await corespun(['profile', 'busy', '-s', '600', '-o', nowhere], '', { env })
      const err = `corespun: ${nowhere}: cannot be written: no such file or directory\n`
      assert.deepEqual(refused, { code: 2, signal: null, out: '', err })
    } finally {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
  },
)

test('a profile of the example service names nearly all of its CPU time', { skip, timeout }, async (t) => {
  const cwd = fileURLToPath(new URL('../..', import.meta.url))
  const words = ['serve', 'examples/service/app.ts', '--port', '0', '--workers', '2']
  const server = start(words, { cwd, env })
  let isOver = false
  try {
    await until(server.child.stdout, () => server.out.includes('serving'))
    const [url] = /http:\/\/[\d.:]+/.exec(server.out)
    const text = readFileSync(join(cwd, 'examples/service/app.ts'), 'utf8')
    let scored = 0
    const load = async (client) => {
      for (let count = 0; !isOver; count += 1) {
        // One that was scored before comes from the store.
        const body = JSON.stringify({ name: 'app.ts', text: `${text}\n// ${client} ${count}` })
        await (await fetch(`${url}/api/score`, { method: 'POST', body, headers })).text()
        await (await fetch(`${url}/api/stats`)).text()
        scored += 1
      }
    }
    const headers = { 'content-type': 'application/json' }
    const loads = Array.from({ length: 4 }, (_, client) => load(client))
    await observed('app')
    // The workers have made their arrows, also on a machine that is slow.
    while (scored < 100) await pause(20)
    const file = join(files, 'service.cpuprofile')
    const { code, err } = await corespun(['profile', 'app', '-s', '5', '-o', file], '', { env })
    isOver = true
    await Promise.all(loads)
    assert.equal(code, 0, err)
    const [, share] = /([\d.]+) % of it with a label/.exec(err)
    t.diagnostic(err)
    // The bar of 95 is the bench's: beside other work, more is collections and waits.
    assert.ok(Number(share) >= 90, err)
    assert.match(err, / {2}stage parse and analyse\n/)
    assert.match(err, / {2}POST \/api\/score\n/)
    // Its arrow is made in each worker before the first of them.
    const [, ofArrows = 0] = /([\d.]+) % {2}corespun\.cpu runArrow\n/.exec(err) ?? []
    assert.ok(Number(ofArrows) < 3, err)
  } finally {
    isOver = true
    server.child.kill('SIGKILL')
    await once(server.child, 'exit')
  }
})

for (const [what, words, more] of [
  ['--no-observe', ['--no-observe'], {}],
  ['CORESPUN_OBSERVE=off', [], { CORESPUN_OBSERVE: 'off' }],
])
  test(`${what} leaves the socket closed`, { skip, timeout }, async () => {
    const own = { XDG_RUNTIME_DIR: mkdtempSync(join(files, 'off-')) }
    const serves = (words, more = {}) =>
      start(['serve', 'modules/hello.mjs', '-p', '0', '-w', '1', ...words], { env: { ...own, ...more } })
    const server = serves(words, more)
    await until(server.child.stdout, () => server.out.includes('serving'))
    // One that is observed, and was started later, has its socket by then.
    const other = serves([])
    const found = await observed('hello', own)
    for (const each of [server, other]) each.child.kill('SIGTERM')
    for (const each of [server, other]) assert.equal((await each.ended).code, 0)
    assert.deepEqual(found, [`${other.child.pid}.hello.sock`])
  })

for (const [words, problem] of [
  [['top', 'a', 'b'], /expected one process, received more: b/],
  [['top', '--every', 'soon'], /--every takes a time/],
  [['stacks'], /name the process, by its pid or its name/],
  [['stacks', 'a', 'b'], /expected one process, received more: b/],
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

const major = Number(process.versions.node.split('.')[0])

/** Run a command under Node's permission model. */
async function permitted(words, ...allowed) {
  const permission = major < 22 ? '--experimental-permission' : '--permission'
  const child = spawn(process.execPath, [permission, ...allowed, '--no-warnings', program, ...words], {
    cwd: folder,
  })
  let [out, err] = ['', '']
  child.stdout.on('data', (text) => {
    out += text
    if (out.includes('serving')) setTimeout(() => child.kill('SIGTERM'), 1500) // behind its socket
  })
  child.stderr.on('data', (text) => (err += text))
  const [code] = await once(child, 'close')
  return { code, err }
}

test(
  'what the permission model refuses is one line with the option, and no bug',
  { skip, timeout },
  async () => {
    const read = `--allow-fs-read=${join(folder, '..', '..')}`
    const refused = (permission, flag) =>
      new RegExp(`^corespun: --permission refuses ${permission}( of .*)?; allow it by ${flag}\n$`)
    const stacks = await permitted(['stacks', 'x'], read)
    assert.match(stacks.err, refused('FileSystemRead', '--allow-fs-read'))
    const watched = await permitted(['serve', 'modules/hello.mjs', '--watch'], read, '--allow-worker')
    assert.match(watched.err, refused('ChildProcess', '--allow-child-process'))
    assert.deepEqual([stacks.code, watched.code], [2, 2])
    // Node 20 permits no addons with it.
    if (major < 22) return
    const words = ['serve', 'modules/hello.mjs', '-p', '0', '-w', '1']
    const served = await permitted(words, read, '--allow-worker', '--allow-addons')
    assert.deepEqual(served, { code: 0, err: '' }, 'no socket, and not a word about it')
  },
)
