/**
 * The bench's end of a program on the JVM: each result checked, a wrong one refused, an exit reported.
 *
 * A script of Node replaces the JVM.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SPINNING } from '../harness/conditions.ts'
import { Jvm, jvmCommand } from '../harness/jvm.ts'
import { Zio } from '../tables/fiber/zio.ts'

const HELLO = `console.log('{"programs":["sequential, default"],"notes":{}}');`

/** A program that prints `body(words)` for each line, split at its tabs. */
function program(body: string): readonly string[] {
  const loop =
    `require('node:readline').createInterface(process.stdin)` +
    `.on('line', (line) => { const words = line.split('\\t'); ${body} })`
  return [process.execPath, '-e', HELLO + loop]
}

const ORDER = { program: 'sequential, default', num: 10, fibers: 16, sliceMs: 20, clock: 'wall' } as const

test('a slice is counted by the clock of its order', async () => {
  const body = `console.log(JSON.stringify({ count: words[1] * words[2], seconds: 2, cpuSeconds: 4 }))`
  const zio = await Zio.open(program(body), SPINNING)
  try {
    assert.deepEqual(zio.programs, ['sequential, default'])
    assert.equal(await zio.slice(ORDER), 80)
    assert.equal(await zio.slice({ ...ORDER, clock: 'cpu' }), 40)
    assert.equal(await zio.slice({ ...ORDER, num: 20 }), 160)
  } finally {
    await zio.end()
  }
})

test('each program has a process of its own, started when it is first asked', async () => {
  const zio = await Zio.open(
    program(`console.log(JSON.stringify({ count: process.pid, seconds: 1 }))`),
    SPINNING,
  )
  try {
    const pids = []
    for (const name of ['one', 'other', 'one']) pids.push(await zio.slice({ ...ORDER, program: name }))
    assert.equal(pids[0], pids[2])
    assert.notEqual(pids[0], pids[1])
  } finally {
    await zio.end()
  }
})

test('a wrong sum ends the run with what it was', async () => {
  const wrong = { work: 'sequential, default 0..10', got: '1', expected: '2' }
  const body = `console.log(${JSON.stringify(JSON.stringify({ wrong }))})`
  const zio = await Zio.open(program(body), SPINNING)
  try {
    await assert.rejects(zio.slice(ORDER), { code: 'WRONG_ANSWER', facts: { contender: 'zio', ...wrong } })
  } finally {
    await zio.end()
  }
})

test('a program that ends, or never begins, is reported by name', async () => {
  const zio = await Zio.open(program('process.exit(3)'), SPINNING)
  const facts = { contender: 'zio', why: 'exit 3' }
  await assert.rejects(zio.slice(ORDER), { code: 'CONTENDER_DIED', facts })
  await zio.end()
  const none = new Jvm('zio', ['/nowhere/java'])
  await assert.rejects(none.ask(), { code: 'CONTENDER_DIED' })
  await none.end()
})

test('without Java there is no program, and the reason is reported', () => {
  const path = process.env.PATH
  process.env.PATH = '/nowhere'
  try {
    const skipped: string[] = []
    assert.equal(
      jvmCommand('zio', (what, why) => skipped.push(`${what}: ${why}`)),
      undefined,
    )
    assert.deepEqual(skipped, ['zio: not here: no Java (java)'])
  } finally {
    process.env.PATH = path
  }
})
