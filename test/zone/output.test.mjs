/**
 * What tasks print: all of it appears, in order, although their threads do not return to their event loops
 * and the program ends with their last result.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check, program } from './run.mjs'

const lines = (count) => Array.from({ length: count }, (_, line) => `line ${line}`).join('\n')
const PRINT = (count) => `(how) => {
  for (let line = 0; line < ${count}; line++) console.log('line ' + line)
  if (how === 'loop') for (;;);
}`

// By `process.exit()` or an error it may lose lines: it ends before its event loop has turned.
test('a program that ends with the last result', async () => {
  await check(`const cpu = zone.create('cpu', { workers: 1 })\nawait cpu.run(${PRINT(300)})`, {
    out: lines(300),
  })
})

test('a task that never returns and is ended', async () => {
  const run = `const cpu = zone.create('cpu', { workers: 1, graceMs: 0 })
    const stop = new AbortController()
    const { write } = process.stdout
    process.stdout.write = function (...args) {
      if (args[0].includes('line 299')) stop.abort()
      return Reflect.apply(write, this, args)
    }
    await cpu.execute(${PRINT(300)}, ['loop'], { signal: stop.signal }).catch(() => {})`
  await check(run, { out: lines(300) })
})

test('more than may be on its way keeps its order', async () => {
  const run = `const cpu = zone.create('cpu', { workers: 1 })
    await cpu.run(${PRINT(100_000)})
    await cpu.run(() => console.error('x'.repeat(3_000_000)))
    await cpu.close()`
  const { code, out, err } = await program(run)
  assert.equal(code, 0)
  assert.equal(out, lines(100_000))
  assert.equal(err.length, 3_000_000)
})

test('a thread whose program replaces standard output', async () => {
  const run = `const cpu = zone.create('cpu', { workers: 1 })
    await cpu.run(() => {
      Object.defineProperty(process, 'stdout', { value: process.stderr })
      console.log('to standard error')
    })
    await cpu.close()`
  await check(run, { out: '', err: /^to standard error$/ })
})
