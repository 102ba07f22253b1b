/**
 * `corespun run` and the signals that ask it to stop: what runs is finished, the rest is not begun, and the
 * report is exact, so the job can be taken up where it stopped.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { hearing, numbers, signalled, start, until } from './corespun.mjs'

const folder = mkdtempSync(join(tmpdir(), 'corespun-cli-'))
after(() => rmSync(folder, { recursive: true }))
let holds = 0

/** A run whose items go on only when released; resolves when `running` of them run. */
async function held(words, input, running, { twice = false } = {}) {
  const HOLD = join(folder, `hold-${++holds}`)
  const started = start(['run', 'modules/items.mjs#hold', '-w', '2', ...words], {
    env: { HOLD, ...hearing({ twice }) },
  })
  started.child.stdin.write(input)
  await until(started.child.stderr, () => started.err.match(/^runs /gm)?.length === running)
  return { ...started, started, release: () => writeFileSync(HOLD, '') }
}

const messages = ({ err }) => err.replace(/^(runs|received) .*\n/gm, '')

for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
]) {
  for (const order of [[], ['--unordered']]) {
    test(`${signal} finishes what runs ${order.join('')}`, { timeout: 60_000 }, async () => {
      const { started, ended, release } = await held(order, numbers(1000), 2)
      // It has to arrive before the items go on: their results are all that could race.
      await signalled(started, signal)
      release()
      const end = await ended
      assert.deepEqual(end.out.trimEnd().split('\n').sort(), ['"1"', '"2"'])
      assert.equal(messages(end), 'corespun: interrupted: 2 items are done; continue with --skip 2\n')
      assert.equal(end.code, code)
    })
  }
}

test(
  'the report is exact: the items reported as done are those that came out',
  { timeout: 60_000 },
  async () => {
    const started = start(['run', 'modules/items.mjs#chars', '-n', '-w', '3'])
    started.child.stdin.on('drain', () => started.child.stdin.write(numbers(5000)))
    started.child.stdin.write(numbers(5000))
    await until(started.child.stdout, () => started.out.length > 100_000)
    started.child.kill('SIGINT')
    const { out, err, code } = await started.ended
    const lines = out.trimEnd().split('\n')
    for (const [index, line] of lines.entries()) assert.equal(JSON.parse(line).item, index + 1)
    const report = `^corespun: interrupted: [\\d,]+ items are done; continue with --skip ${lines.length}\n$`
    assert.match(err, new RegExp(report))
    assert.equal(code, 130)
  },
)

/** A second signal, which is not an echo of the first, received before: see received.mjs. */
async function twoSignals(started) {
  await signalled(started, 'SIGINT')
  started.child.kill('SIGINT')
}

for (const [order, which] of [
  ['ordered', 'item 1 and later ones'],
  ['unordered', 'items that ran'],
]) {
  test(`a second SIGINT stops at once, ${order}`, { timeout: 60_000 }, async () => {
    const { started, ended } = await held(order === 'ordered' ? [] : ['--unordered'], numbers(10), 2)
    await twoSignals(started)
    const end = await ended
    assert.equal(end.code, 130)
    assert.equal(end.out, '')
    assert.equal(messages(end), `corespun: stopped at once; ${which} may lack a result\n`)
  })
}

test('a SIGINT that npm hands on as well is one SIGINT', { timeout: 60_000 }, async () => {
  const { started, ended, release } = await held([], numbers(1000), 2, { twice: true })
  started.child.kill('SIGINT')
  await until(started.child.stderr, () => started.err.split('received SIGINT').length === 3)
  release()
  assert.equal(messages(await ended), 'corespun: interrupted: 2 items are done; continue with --skip 2\n')
})

test(
  'stopped at once with a reader that stalls: what is reported as written is',
  { timeout: 60_000 },
  async () => {
    const started = start(['run', 'modules/items.mjs#wide', '-w', '2'], { env: hearing() })
    const { child } = started
    child.stdin.write('0\n')
    await until(child.stdout, () => started.out !== '')
    child.stdout.pause()
    child.stdin.write(numbers(5000))
    await new Promise((done) => setTimeout(done, 1500)) // The pipe and every buffer before it are full.
    await twoSignals(started)
    await new Promise((done) => child.once('exit', done))
    child.stdout.resume()
    const { out, err, code } = await started.ended
    const next = Number(
      /^corespun: stopped at once; item (\d+) and later ones may lack a result\n$/.exec(
        messages({ err }),
      )?.[1],
    )
    const lineCount = out.split('\n').length - 1
    assert.ok(next > 1 && next - 1 <= lineCount, `item ${next} is the first in doubt of ${lineCount} lines`)
    assert.equal(code, 130)
  },
)

test('SIGINT while the input is silent', { timeout: 60_000 }, async () => {
  const started = start(['run', 'modules/items.mjs', '-'])
  started.child.stdin.write('a\n')
  await until(started.child.stdout, () => started.out !== '')
  started.child.kill('SIGINT')
  const { out, err, code } = await started.ended
  assert.equal(out, '{"got":"a"}\n')
  assert.equal(err, 'corespun: interrupted: 1 item is done; continue with --skip 1\n')
  assert.equal(code, 130)
})

test('what continues an interrupted run of files compares their names', { timeout: 60_000 }, async () => {
  const paths = ['modules/double.ts', 'modules/typed.ts', 'modules/items.mjs']
  const { started, ended, release } = await held(paths, '', 2)
  await signalled(started, 'SIGINT')
  release()
  const [, mark] = /continue with --skip (2:[0-9a-f]{8})\n$/.exec((await ended).err) ?? []
  const rest = await start(['run', 'modules/items.mjs', ...paths, '--skip', mark]).ended
  assert.equal(rest.out, '{"got":"modules/items.mjs"}\n')
  const reordered = await start(['run', 'modules/items.mjs', ...paths.reverse(), '--skip', mark]).ended
  assert.equal(reordered.code, 2)
  assert.match(reordered.err, /--skip 2: the first files are not those that were done/)
})
