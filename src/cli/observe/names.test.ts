/**
 * What `corespun stacks` and `profile` print of a process whose names attack the terminal: nothing that a
 * terminal obeys. What `top` prints is in layout.test.ts.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { SOCKETS } from '../../observe/observe.test.support.ts'
import { command } from '../command.ts'
import type { CommandContext } from '../run/run.ts'
import { folded } from './stacks.ts'

const ATTACK = '\u001B[2J\u009B31m\u202E\u0007'
const THREADS = [
  {
    thread: 0,
    name: `main${ATTACK}`,
    worker: `cpu${ATTACK}/0`,
    frames: [`f${ATTACK} (file:///app.ts:1:1)`],
    fibers: `fiber${ATTACK}\n  waits`,
    first: ATTACK,
    problem: { code: `OBSERVE_FAILED${ATTACK}`, message: `failed${ATTACK}` },
  },
]
const TASKS = [{ worker: `cpu${ATTACK}/0`, name: ATTACK, source: ATTACK, ageMs: 1, caller: ATTACK }]
const PROFILE = {
  nodes: [{ id: 1, callFrame: { functionName: ATTACK, url: '', lineNumber: 0, columnNumber: 0 } }],
  startTime: 0,
  endTime: 2000,
  samples: [1],
  timeDeltas: [1000],
}
const ANSWERS: Readonly<Record<string, object>> = {
  stacks: { result: { threads: THREADS, tasks: TASKS } },
  profile: {
    result: { threads: [{ thread: 0, name: ATTACK, first: ATTACK, cpu: PROFILE, problem: ATTACK }] },
  },
}

for (const words of [
  ['stacks', 'attack'],
  ['stacks', 'attack', '--json'],
  ['profile', 'attack', '--output', join(SOCKETS, '..', 'attack.cpuprofile')],
])
  test(`nothing that ${words.join(' ')} prints is obeyed by a terminal`, async () => {
    mkdirSync(SOCKETS, { recursive: true, mode: 0o700 })
    const server = createServer((socket) => {
      socket.once('data', () => socket.end(`${JSON.stringify(ANSWERS[words[0]])}\n`))
    })
    await once(server.listen(join(SOCKETS, `${process.pid}.attack.sock`)), 'listening')
    let printed = ''
    const out = (): PassThrough =>
      new PassThrough().on('data', (bytes: Buffer) => (printed += bytes.toString()))
    const context = { stdout: out(), stderr: out(), folder: '.', onSignal: () => () => {} }
    assert.equal(await command(words, context as unknown as CommandContext), 1)
    assert.match(printed, /cpu.*\/0|CPU time/)
    assert.doesNotMatch(printed, /[^\P{C}\n]/u)
    await new Promise((resolve) => server.close(resolve))
    rmSync(join(SOCKETS, `${process.pid}.attack.sock`), { force: true })
  })

test('frames of Corespun are folded below those of the program, and shown alone', () => {
  const own = 'invoke (file:///app/node_modules/corespun/lib/chunks/zone.js:9:9)'
  assert.deepEqual(folded([]), [])
  const mine = 'Task.f (file:///app/a.ts:1:1)'
  assert.deepEqual(folded([mine, own, own]), [`at ${mine}`, '…'])
  assert.deepEqual(folded([own, mine]), [`at ${own}`, `at ${mine}`])
  assert.deepEqual(folded([own]), [`at ${own}`])
})
