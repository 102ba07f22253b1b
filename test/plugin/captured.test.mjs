/**
 * Captured values in every call that sends a function, with real zones: a program under the hook of Node.
 *
 * Each row of the program is one call; the same calls without the plugin are refused.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { inRoot } from '../../scripts/set-up/index.mjs'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'corespun-captured-')))
after(() => rmSync(folder, { recursive: true, force: true }))
mkdirSync(join(folder, 'node_modules'))
symlinkSync(inRoot(), join(folder, 'node_modules', 'corespun'))

/** `n` is 2, `list` is [1, 2]. */
const CALLS = {
  'cpu.run((m) => m * n + list.length, 10)': 22,
  'cpu.run((m) => m.at * n, { at: 3 })': 6,
  'cpu.with({ timeoutMs: 5000 }).run((m) => m * n, 4)': 8,
  'cpu.execute((m) => m * n, [5]).then(({ value }) => value)': 10,
  'cpu.broadcast((m) => void (globalThis.kept = m * n), [6])': undefined,
  'cpu.run(() => globalThis.kept)': 12,
  'cpu.map([1, 2, 3], (m) => m * n)': [2, 4, 6],
  'cpu.reduce([1, 2, 3], (a, b) => Math.max(a, b * n), 0)': 12,
  'lift((m) => m * n).on(cpu).run(7)': 14,
  'effectTotal((m) => m * n).on(cpu).run(7)': 14,
  'lift((m) => m * n).map((m) => m + n).tap((m) => m + n).on(cpu).run(7)': 16,
  'effect((m) => named(m), () => "caught").on(cpu).run("a.b")': '.b',
  'liftAsync(async (m) => named(m)).on(cpu).run("a.b")': '.b',
  'fork(on(cpu, (m) => named(m) + n, "a.b")).join()': '.b2',
  'inZone(cpu, 5)': 10,
  'onCpu(lift((m) => named(m) + n))': '.b2',
  'new Holder(cpu).go(5)': 10,
  'cpu.run(() => twice(4))': 8,
  'cpu.run((f) => f(1), (m) => m + n)': 3,
  'cpu.run(sendOn, (m) => m + n)': 3,
  'cpu.run(async (m) => { await null; return m * n }, 9)': 18,
  'cpu.run(() => { list.push(3); return list.length })': 3,
  'cpu.run(() => list.length)': 2,
  'cpu.run(() => given())': 'pure',
  'cpu.run(() => socket.at)': 'TRANSPORT_REFUSED the captured variable socket.at cannot',
  'cpu.run(() => bound())': 'TRANSPORT_FUNCTION the captured variable bound cannot',
  'cpu.run((m) => m.at + n, { at: Symbol() })': 'TRANSPORT_REFUSED args[0].at cannot',
  'cpu.run(() => { throw new Error("at " + n) })': 'at 2 | app.mjs:LINE',
}

test('captured values are sent with the function, by each method', () => {
  const calls = Object.keys(CALLS)
  const program = `import { zone } from 'corespun'
import { effect, effectTotal, lift, liftAsync } from 'corespun/arrow'
import { fork, on } from 'corespun/fiber'
import { extname as named } from 'node:path'
/** @param {import('corespun').Zone} given */
const inZone = (given, m) => given.run(() => m * 2)
const onCpu = (arrow) => arrow.on(zone.get('cpu')).run('a.b')
class Holder {
  /** @type {import('corespun').Zone} */
  #held
  constructor(held) {
    this.#held = held
  }
  go(m) {
    return this.#held.run(() => m * 2)
  }
}
const cpu = zone.create('cpu', { workers: 1 })
const asked = (error) => error.code === undefined
  ? error.message + ' | ' + /[\\w.]+:\\d+/.exec(error.stack.split('\\n')[1])[0]
  : error.code + ' ' + error.message.split(' be ')[0]
const sendOn = async (f) => {
  const { zone } = await import('corespun')
  const other = zone.create('other', { workers: 1 })
  return other.run(f, 1).finally(() => other.close())
}
async function calls(n, given) {
  const list = [1, 2], socket = { at: Symbol('s') }, bound = asked.bind(null)
  const twice = (m) => m * n
  return [
    ${calls.map((call) => `() => ${call},`).join('\n    ')}
  ]
}
const found = []
for (const call of await calls(2, () => 'pure')) found.push(await (async () => call())().catch(asked))
await cpu.close()
console.log(JSON.stringify(found))
`
  const file = join(folder, 'app.mjs')
  writeFileSync(file, program)
  const flags = ['--import', 'corespun/plugin/register', file]
  const { stdout, stderr } = spawnSync(process.execPath, flags, { cwd: folder, encoding: 'utf8' })
  const found = JSON.parse(stdout || assert.fail(stderr))
  const lines = program.split('\n')
  for (const [at, call] of calls.entries()) {
    const expected = CALLS[call]
    const line = lines.findIndex((text) => text.includes(call)) + 1
    assert.deepEqual(
      found[at] ?? undefined,
      typeof expected === 'string' ? expected.replace('LINE', line) : expected,
      call,
    )
  }
})

test('a zone that is not recognised refuses the function, and the error names the remedy', () => {
  const work = (comment) => `
    import { zone } from 'corespun'
    import { extname } from 'node:path'
    ${comment}
    const work = (cpu) => cpu.run((name) => extname(name), 'a.b')
    const cpu = zone.create('cpu', { workers: 1 })
    console.log(await (async () => work(cpu))().catch((error) => error.code + ': ' + error.message))
    await cpu.close()`
  const printed = (comment) => {
    const file = join(folder, 'remedy.mjs')
    writeFileSync(file, work(comment))
    const flags = ['--import', 'corespun/plugin/register', file]
    return spawnSync(process.execPath, flags, { cwd: folder, encoding: 'utf8' }).stdout
  }
  const refused = printed('')
  assert.match(refused, /^FUNCTION_CAPTURES: .*extname \(line 5, column \d+, imported from "node:path"\)/)
  assert.match(refused, /declares it with the type Zone of 'corespun' \(TypeScript or JSDoc\)/)
  assert.equal(printed("/** @param {import('corespun').Zone} cpu */"), '.b\n')
})
