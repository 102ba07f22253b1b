/**
 * `corespun run --journal` of what `durable()` has made: each item is a run, and the same command goes on at
 * the step that an item had reached, after a kill or a failure. A kill waits for the lease, ten seconds.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { folderOf, runsHere } from '../../dist/fleet/engine/sqlite/node.test.support.js'
import { corespun, start, until } from './corespun.mjs'

/** `read` and `save` write a line for each call; `save` fails, or never returns, by HOW. */
const MODULE = `
import { appendFileSync, readFileSync } from 'node:fs'
import { lift, liftAsync } from ${JSON.stringify(import.meta.resolve('corespun/arrow'))}
import { durable, step } from ${JSON.stringify(import.meta.resolve('corespun/durable'))}
const ran = (line) => appendFileSync(process.env.RAN, line + '\\n')
const read = (path) => {
  ran('read ' + path)
  return { path, text: readFileSync(path, 'utf8') }
}
const save = ({ path, text }) => {
  ran('save ' + path)
  if (text === 'bad' && process.env.HOW === 'fail') throw new RangeError('it is bad')
  if (text === 'bad' && process.env.HOW === 'stop') {
    appendFileSync(2, 'stopped\\n')
    return new Promise(() => setInterval(() => {}, 1000))
  }
  return text.toUpperCase()
}
const saved = liftAsync(async (found) => save(found), (error) => error).named('save')
export const pipeline = durable('pipeline', lift(read).named('read').andThen(saved))
export const body = durable('body', function* (path) {
  const found = yield* step('read', read, [path])
  return yield* step('save', save, [found])
})
export const undoing = durable('undoing', function* (path) {
  const found = yield* step('read', read, [path])
  try {
    return yield* step('save', save, [found])
  } finally {
    yield* step('close', () => ran('close ' + path))
  }
})
export const lines = durable('line', function* (line) {
  return yield* step('count', async () => {
    ran('count ' + line)
    if (process.env.HOW === 'fail') throw new RangeError('it is bad')
    return line.length
  })
})
const other = durable('line', function* (line) {
  return 'other ' + line
})
export { other }
export const dying = durable('dying', function* (line) {
  return yield* step('die', () => {
    ran('die ' + line)
    if (line === 'dies') process.exit(3)
    return line
  })
})
`
const timeout = 120_000

if (runsHere(import.meta.url)) {
  const root = folderOf('corespun-durable-items')
  let count = 0

  function room(name) {
    const cwd = join(root, String(++count))
    mkdirSync(cwd)
    for (const [file, text] of Object.entries({ 'a.txt': 'a', 'b.txt': 'bad', 'c.txt': 'c' }))
      writeFileSync(join(cwd, file), text)
    writeFileSync(join(cwd, 'work.mjs'), MODULE)
    const RAN = join(cwd, 'ran.log')
    writeFileSync(RAN, '')
    const words = ['run', `work.mjs#${name}`, '*.txt', '-w', '2']
    const optionsOf = (HOW) => ({ cwd, env: { RAN, HOW } })
    const kept = ['--journal', 'work.db']
    const lined = (of) => ['run', `work.mjs#${of}`, '--lines', '-', '-w', '2', ...kept]
    return {
      cwd,
      lines: (text, how = '', of = name) => corespun(lined(of), text, optionsOf(how)),
      failed: () => corespun([...words, ...kept, '--failed'], '', optionsOf('')),
      begin: (how) => start([...words, '--journal', 'work.db'], optionsOf(how)),
      run: (how) => corespun([...words, '--journal', 'work.db'], '', optionsOf(how)),
      bare: () => corespun(words, '', optionsOf('')),
      ran() {
        const lines = readFileSync(RAN, 'utf8').split('\n').slice(0, -1)
        writeFileSync(RAN, '')
        return lines.sort()
      },
    }
  }

  const DONE = '"A"\n"BAD"\n"C"\n'
  const ALL = ['read a.txt', 'read b.txt', 'read c.txt', 'save a.txt', 'save b.txt', 'save c.txt']

  for (const name of ['pipeline', 'body'])
    test(
      `${name}: an item that has failed goes on at its step; one that has changed begins`,
      { timeout },
      async () => {
        const { cwd, run, ran } = room(name)
        const first = await run('fail')
        assert.equal(first.code, 1, first.err)
        assert.match(first.out, /^"A"\n\{"item":2,"path":"b\.txt","error":\{"name":"RangeError".*\n"C"\n$/)
        assert.deepEqual(ran(), ALL)
        const second = await run('')
        assert.deepEqual([second.code, second.out], [0, DONE], second.err)
        assert.deepEqual(ran(), ['save b.txt'])
        writeFileSync(join(cwd, 'c.txt'), 'changed')
        assert.equal((await run('')).out, '"A"\n"BAD"\n"CHANGED"\n')
        assert.deepEqual(ran(), ['read c.txt', 'save c.txt'])
      },
    )

  test('killed within a step: the next command goes on at that step', { timeout }, async () => {
    const { begin, run, ran } = room('pipeline')
    const started = begin('stop')
    await until(started.child.stderr, () => started.err.includes('stopped\n'))
    started.child.kill('SIGKILL')
    await once(started.child, 'close')
    const before = ran()
    assert.ok(before.includes('read b.txt'))
    const second = await run('')
    assert.deepEqual([second.code, second.out], [0, DONE], second.err)
    const again = ran()
    assert.ok(again.includes('save b.txt'))
    assert.ok(!again.includes('read b.txt'))
    // What had not begun runs now, and nothing else: a step whose record was cut off may run twice.
    assert.deepEqual([...new Set([...before, ...again])].sort(), ALL)
  })

  test('one that has undone what it had done begins anew', { timeout }, async () => {
    const { run, ran, failed } = room('undoing')
    assert.equal((await run('fail')).code, 1)
    ran()
    assert.match((await failed()).out, /^\{"path":"b\.txt","error":\{"name":"RangeError"/)
    const { code, out, err } = await run('')
    assert.deepEqual([code, out], [0, DONE], err)
    assert.deepEqual(ran(), ['close b.txt', 'read b.txt', 'save b.txt'])
  })

  test('one that a duplicate begins anew meanwhile fails as it did', { timeout }, async () => {
    const { lines } = room('undoing')
    const text = 'b.txt\n'.repeat(12)
    for (const { code, out, err } of await Promise.all([lines(text, 'fail'), lines(text, 'fail')])) {
      assert.equal(code, 1, err)
      assert.equal(out.match(/"error":\{"name":"RangeError"/g)?.length, 12, out)
    }
    assert.equal((await lines(text)).out, '"BAD"\n'.repeat(12))
  })

  test('one whose code has changed fails, and goes on when it fits', { timeout }, async () => {
    const { cwd, run, ran } = room('body')
    assert.equal((await run('fail')).code, 1)
    ran()
    const file = join(cwd, 'work.mjs')
    writeFileSync(file, MODULE.replaceAll("step('read'", "step('load'"))
    const { code, out, err } = await run('')
    assert.equal(code, 1, err)
    assert.match(out, /^"A"\n\{"item":2,.*"code":"RUN_DIVERGED".*\n"C"\n$/)
    assert.match(out, / asks for load where its journal has read/)
    assert.deepEqual(ran(), [])
    writeFileSync(file, MODULE)
    assert.equal((await run('')).out, DONE)
    assert.deepEqual(ran(), ['save b.txt'])
  })

  test('equal lines are one run, and another function has others', { timeout }, async () => {
    const { lines, ran } = room('lines')
    const text = 'abc\nde\n'.repeat(20)
    assert.equal((await lines(text, 'fail')).code, 1)
    ran()
    const [one, two] = await Promise.all([lines(text), lines(text)])
    for (const { code, out, err } of [one, two]) assert.deepEqual([code, out], [0, '3\n2\n'.repeat(20)], err)
    assert.deepEqual(ran(), ['count abc', 'count de'])
    assert.equal((await lines('abc\n', '', 'other')).out, '"other abc"\n')
  })

  test('an item that ends its worker fails, and the others are done', { timeout }, async () => {
    const { lines, ran } = room('dying')
    const { code, out } = await lines('a\ndies\nb\n')
    assert.equal(code, 1)
    assert.match(out, /^"a"\n\{"item":2,.*\n"b"\n$/)
    assert.ok(ran().includes('die dies'))
  })

  test('without a journal the message names the option', { timeout }, async () => {
    const { bare, ran } = room('pipeline')
    const { code, err } = await bare()
    assert.equal(code, 2)
    assert.match(
      err,
      /"pipeline" is not a function but a durable run, which needs --journal, such as --journal work\.db/,
    )
    assert.deepEqual(ran(), [])
  })
}
