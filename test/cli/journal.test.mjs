/**
 * `corespun run --journal` with a file of SQLite: after a kill, a signal or a failure the same command runs
 * what is missing, changed or failed, and its output has one line for each item. Some thirty processes take
 * about ten seconds.
 */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { folderOf, runsHere } from '../../dist/fleet/engine/sqlite/node.test.support.js'
import { corespun, hearing, numbers, signalled, start, until } from './corespun.mjs'

/** Every run of an item returns something else; one whose file, or line, is `bad` fails while BAD is set. */
const MODULE = `
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
export const work = (item) => {
  appendFileSync(process.env.RAN, item + '\\n')
  const text = existsSync(item) ? readFileSync(item, 'utf8') : item
  if (text === 'bad' && process.env.BAD) throw Object.assign(new RangeError('it is bad'), { code: 'BAD' })
  return [item, text, process.pid, Math.random()]
}
export const hold = (item) => {
  if (!existsSync(process.env.HOLD)) appendFileSync(2, 'runs ' + item + '\\n')
  while (!existsSync(process.env.HOLD)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
  return work(item)
}
`
const timeout = 120_000

if (runsHere(import.meta.url)) {
  const root = folderOf('corespun-journal')
  let count = 0

  /** A folder with the module and files, and a way to run the command in it. */
  function room(files = {}) {
    const cwd = join(root, String(++count))
    mkdirSync(cwd)
    writeFileSync(join(cwd, 'work.mjs'), MODULE)
    for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text)
    const RAN = join(cwd, 'ran.log')
    writeFileSync(RAN, '')
    const optionsOf = (env = {}) => ({ cwd, env: { RAN, ...env } })
    return {
      cwd,
      begin: (words, env) =>
        start(['run', 'work.mjs#work', '--journal', 'work.db', ...words], optionsOf(env)),
      async run(words, { input = '', env = {} } = {}) {
        const all = ['run', 'work.mjs#work', '--journal', 'work.db', ...words]
        const { out, err, code } = await corespun(all, input, optionsOf(env))
        return { lines: out.split('\n').slice(0, -1), err, code }
      },
      options: optionsOf,
      /** What has run since it was asked last. */
      ran() {
        const items = readFileSync(RAN, 'utf8').split('\n').slice(0, -1)
        writeFileSync(RAN, '')
        return items.sort()
      },
    }
  }

  const FILES = { 'a.txt': 'a', 'b.txt': 'bad', 'c.txt': 'c' }
  const bad = { env: { BAD: '1' } }

  test('what is done does not run again; what has failed or changed does', { timeout }, async () => {
    const { cwd, run, ran } = room(FILES)
    const first = await run(['*.txt'], bad)
    assert.equal(first.code, 1)
    assert.deepEqual(ran(), ['a.txt', 'b.txt', 'c.txt'])
    const failed = await run(['--failed'])
    const error = { name: 'RangeError', code: 'BAD', message: 'it is bad' }
    assert.deepEqual(
      [failed.lines.map((line) => JSON.parse(line)), failed.code],
      [[{ path: 'b.txt', error }], 0],
    )

    const second = await run(['*.txt'])
    assert.deepEqual([second.code, second.err], [0, 'corespun: 2 results are from work.db\n'])
    assert.deepEqual(ran(), ['b.txt'])
    assert.deepEqual([second.lines[0], second.lines[2]], [first.lines[0], first.lines[2]])
    assert.deepEqual((await run(['--failed'])).lines, [])

    writeFileSync(join(cwd, 'c.txt'), 'changed')
    writeFileSync(join(cwd, 'd.txt'), 'new')
    const third = await run(['*.txt', '-n'])
    assert.deepEqual(ran(), ['c.txt', 'd.txt'])
    const all = third.lines.map((line) => JSON.parse(line))
    assert.deepEqual(
      all.map(({ item, value }) => [item, value[0], value[1]]),
      [
        [1, 'a.txt', 'a'],
        [2, 'b.txt', 'bad'],
        [3, 'c.txt', 'changed'],
        [4, 'd.txt', 'new'],
      ],
    )
    assert.deepEqual(all[1].value, JSON.parse(second.lines[1]))
  })

  test('a function that has changed: its results are kept, and that is reported', { timeout }, async () => {
    const { cwd, run, ran } = room(FILES)
    await run(['a.txt', 'b.txt'], bad)
    ran()
    writeFileSync(join(cwd, 'work.mjs'), `${MODULE}// repaired\n`)
    const { err } = await run(['*.txt'])
    const earlier = '1 of an earlier work.mjs: another --journal runs all items'
    assert.equal(err, `corespun: 1 result is from work.db, ${earlier}\n`)
    assert.deepEqual(ran(), ['b.txt', 'c.txt'])
  })

  test('the journal of another function, or of another folder, has nothing for it', { timeout }, async () => {
    const { run, ran, options } = room(FILES)
    await run(['a.txt'])
    ran()
    const hold = options({ HOLD: '.' })
    const other = await corespun(['run', 'work.mjs#hold', '--journal', 'work.db', 'a.txt'], '', hold)
    assert.deepEqual([other.code, ran()], [0, ['a.txt']])
    const below = { ...options(), cwd: join(options().cwd, '..') }
    const words = ['run', `${count}/work.mjs#work`, '--journal', `${count}/work.db`, `${count}/a.txt`]
    assert.equal((await corespun(words, '', below)).err, '')
    assert.deepEqual(ran(), [`${count}/a.txt`])
  })

  const KILLS = 6
  const LINES = 3000
  test(
    'killed at random points: one line for each item, and no printed one changes',
    { timeout },
    async () => {
      const { begin, run } = room()
      const printed = new Map()
      for (let kill = 0; kill < KILLS; kill++) {
        const started = begin(['-', '-w', '2'])
        started.child.stdin.end(numbers(LINES))
        const characters = Math.random() * 40 * LINES
        // It may end before.
        await until(started.child.stdout, () => started.out.length >= characters).catch(() => {})
        started.child.kill('SIGKILL')
        const { out } = await started.ended
        // The last line may be a part.
        for (const line of out.split('\n').slice(0, -1)) {
          const [item] = JSON.parse(line)
          assert.equal(printed.get(item) ?? line, line)
          printed.set(item, line)
        }
      }
      const { lines, code } = await run(['-'], { input: numbers(LINES) })
      assert.equal(code, 0)
      assert.deepEqual(
        lines.map((line) => JSON.parse(line)[0]),
        numbers(LINES).split('\n').slice(0, -1),
      )
      for (const line of lines) assert.equal(printed.get(JSON.parse(line)[0]) ?? line, line)
    },
  )

  for (const order of [[], ['--unordered', '--concurrency', '3']])
    test(`Ctrl-C ${order.join(' ')}: the same command continues`, { timeout }, async () => {
      const { cwd, run, ran, options } = room()
      const HOLD = join(cwd, 'hold')
      const words = ['run', 'work.mjs#hold', '--journal', 'work.db', '-w', '2', ...order, '-']
      const started = start(words, options({ HOLD, ...hearing() }))
      started.child.stdin.write(numbers(500))
      await until(started.child.stderr, () => started.err.match(/^runs /gm)?.length === 2)
      await signalled(started, 'SIGINT')
      writeFileSync(HOLD, '')
      const { out, err, code } = await started.ended
      assert.equal(code, 130)
      const [, done] =
        /^corespun: interrupted: (\d+) items? (?:are|is) done; the same command continues$/m.exec(err)
      assert.equal(out.split('\n').length - 1, Number(done))
      const before = ran()
      assert.equal(before.length, Number(done))
      const rest = await corespun(words, numbers(500), options({ HOLD }))
      assert.equal(rest.code, 0, rest.out.match(/.*error.*/)?.[0] ?? rest.err)
      assert.equal(ran().length, 500 - before.length)
      assert.equal(rest.out.split('\n').length - 1, 500)
      assert.deepEqual((await run(['--failed'])).lines, [])
    })

  test('a second Ctrl-C, and a reader that leaves, end it at once', { timeout }, async () => {
    const { cwd, options, run } = room()
    const words = ['run', 'work.mjs#hold', '--journal', 'work.db', '-w', '1', '-']
    const started = start(words, options({ HOLD: join(cwd, 'hold'), ...hearing() }))
    started.child.stdin.write(numbers(5))
    await until(started.child.stderr, () => /^runs /m.test(started.err))
    await signalled(started, 'SIGINT')
    started.child.kill('SIGINT')
    assert.match((await started.ended).err, /^corespun: stopped at once; the same command continues$/m)

    const left = start(['run', 'work.mjs#work', '--journal', 'work.db', '-'], options())
    left.child.stdin.write(numbers(100_000))
    await until(left.child.stdout, () => left.out.length > 0)
    left.child.stdout.destroy()
    const { code, err } = await left.ended
    assert.deepEqual([code, err], [0, ''])
    assert.equal((await run(['-'], { input: numbers(10) })).lines.length, 10)
  })

  test('two runs on one journal at once: both have all lines', { timeout }, async () => {
    const { run, ran } = room()
    const input = numbers(2000)
    const both = await Promise.all([run(['-'], { input }), run(['-'], { input })])
    for (const { lines, code } of both) assert.deepEqual([lines.length, code], [2000, 0])
    ran()
    assert.equal((await run(['-'], { input })).lines.length, 2000)
    assert.deepEqual(ran(), [])
  })

  test('a journal that cannot be used is named, and nothing runs', { timeout }, async () => {
    const { cwd, run, ran } = room(FILES)
    writeFileSync(join(cwd, 'work.db'), 'Dear SQLite, this is a letter. '.repeat(100))
    const { code, err } = await run(['*.txt'])
    assert.match(err, /^corespun: .*work\.db is not a database of SQLite.*\n$/)
    assert.deepEqual([code, ran()], [2, []])
  })
} else
  test('a Node without SQLite is named', { timeout }, async () => {
    const { code, err } = await corespun(['run', 'modules/items.mjs', '--journal', 'work.db', '-'])
    assert.match(err, /^corespun: sqlite: needs Node 22\.13 or newer, and this is .*\n$/)
    assert.equal(code, 2)
  })
