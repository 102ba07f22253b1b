/**
 * Zones of processes in whole programs: the end of the parent, signals to the group, output, idle zones. Each
 * test is a program of its own. Windows has no such zones.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test as everywhere } from 'node:test'
import { CORESPUN, check } from './run.mjs'

const WAIT_MS = 60_000
function test(name, body) {
  void everywhere(name, { skip: process.platform === 'win32' }, body)
}
const HEAD = `import { zone } from '${CORESPUN}'
const own = zone.create('own', { workers: 1, isolation: 'process', graceMs: 60_000 })`

const PROGRAMS = [
  [
    'an idle zone of processes does not keep the program',
    `const own = zone.create('own', { workers: 2, isolation: 'process' })
     console.log(await own.run(() => 'ran'))`,
    { out: 'ran' },
  ],
  [
    'a call in flight keeps the program until it has ended',
    `const own = zone.create('own', { workers: 1, isolation: 'process' })
     own.run(() => new Promise((resolve) => setTimeout(resolve, 300, 'late'))).then(console.log)`,
    { out: 'late' },
  ],
  [
    'process.exit with loops running ends at once, with its code',
    `const own = zone.create('own', { workers: 2, isolation: 'process' })
     await own.ready()
     for (let n = 0; n < 100; n++) own.run(() => { for (;;); })
     setTimeout(() => process.exit(42), 100)`,
    { code: 42 },
  ],
  [
    'what a process writes to its standard streams is the output of the program',
    `const own = zone.create('own', { workers: 1, isolation: 'process' })
     await own.run(() => { console.log('to out'); console.error('to err') })
     await own.close()`,
    { out: 'to out', err: /^to err$/ },
  ],
  [
    'a thread of the program may own the zone, whose processes end with it',
    `const made = thread(\`
       const own = zone.create('own', { workers: 1, isolation: 'process' })
       parentPort.postMessage(await own.run(() => process.pid))
       setInterval(() => {}, 1000)\`)
     const pid = await new Promise((resolve) => made.once('message', resolve))
     await made.terminate()
     const isAlive = () => { try { return process.kill(pid, 0) } catch { return false } }
     while (isAlive()) await new Promise((resolve) => setTimeout(resolve, 5))
     console.log('ended')`,
    { out: 'ended', zone: false },
  ],
]

for (const [name, text, expected] of PROGRAMS) test(name, () => check(text, expected))

/** A program, and the lines that it prints, one for each call. */
function started(text) {
  const child = spawn(process.execPath, ['--input-type=module', '-e', `${HEAD}\n${text}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  })
  const lines = child.stdout.setEncoding('utf8')[Symbol.asyncIterator]()
  const line = async () => String((await lines.next()).value).trim()
  const ended = new Promise((resolve) => child.once('exit', (...how) => resolve(how)))
  return { child, line, ended }
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('a process whose parent is killed ends, also in a loop', async () => {
  const { child, line, ended } = started(`
    console.log(await own.run(() => process.pid))
    own.run(() => { for (;;); })
    setInterval(() => {}, 1000)`)
  const pid = Number(await line())
  assert.ok(isAlive(pid))
  child.kill('SIGKILL')
  await ended
  const deadline = Date.now() + WAIT_MS
  while (isAlive(pid)) {
    assert.ok(Date.now() < deadline, `process ${pid} outlives its parent`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
})

test('signals to the whole group are for the parent: it decides what still runs', async () => {
  const { child, line, ended } = started(`
    process.on('SIGTERM', () => {})
    process.on('SIGHUP', () => {})
    process.once('SIGINT', async () => {
      console.log(await own.run(() => process.pid), own.stats().died)
      await own.close()
      clearInterval(alive)
    })
    const alive = setInterval(() => {}, 1000)
    console.log(await own.run(() => process.pid))`)
  const pid = await line()
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT']) process.kill(-Number(child.pid), signal)
  assert.equal(await line(), `${pid} 0`)
  assert.deepEqual(await ended, [0, null])
})
