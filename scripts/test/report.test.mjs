/**
 * The end of a run on planted steps: it has every test that failed, with its message, whatever wrote in
 * between; a crate that fails by chance passes and is named.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { runSteps } from './main.mjs'
import { emptyReport, ending, entry, shown } from './report.mjs'
import { listed, STEPS } from './steps.mjs'

const folder = mkdtempSync(join(tmpdir(), 'corespun-report-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** What cargo prints of two failed tests. */
const CARGO = `running 2 tests
test a::tests::one ... FAILED
test a::tests::two - should panic ... FAILED

failures:

---- a::tests::one stdout ----
thread 'a::tests::one' panicked at crates/a/src/lib.rs:9:5:
assertion failed: 1 == 2

---- a::tests::two stdout ----
note: test did not panic as expected

failures:
    a::tests::one
    a::tests::two

test result: FAILED. 0 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

error: test failed, to rerun pass \`--lib\`
`

/** A program instead of cargo: it fails with the first of these texts, then with the next, then passes. */
function cargo(name, ...outputs) {
  const file = join(folder, `${name}.mjs`)
  writeFileSync(
    file,
    `import { existsSync, readFileSync, writeFileSync } from 'node:fs'
    const count = new URL('${name}.count', import.meta.url)
    const run = existsSync(count) ? Number(readFileSync(count, 'utf8')) : 0
    writeFileSync(count, String(run + 1))
    const output = ${JSON.stringify(outputs)}[run]
    if (output !== undefined) { console.log(output); process.exitCode = 101 }`,
  )
  return (report) => shown(name, report, process.execPath, [file], { alone: {} })
}

/** Run planted steps; their output goes where this program's goes. */
async function ended(steps) {
  const planted = { title: 'planted', isBeside: true }
  const table = Object.entries(steps).map(([name, work]) => ({ name, work, ...planted }))
  const results = await runSteps(table, [])
  return { codes: results.map(({ code }) => code), lines: ending(results).split('\n') }
}

test('a crate that fails and passes alone is named as flaky, and the run passes', async () => {
  const { codes, lines } = await ended({ rust: cargo('once', `seed 7\n${CARGO}`) })
  assert.deepEqual(codes, [0])
  assert.deepEqual(lines.slice(-2), ['flaky: once', 'everything passed'])
  assert.ok(
    lines.includes('    assertion failed: 1 == 2') && lines.includes('    seed 7'),
    'its whole log is kept',
  )
})

test('a crate that fails twice, or does not compile, fails with its reason', async () => {
  const { codes, lines } = await ended({
    rust: cargo('twice', CARGO, CARGO),
    loom: cargo('compiles', ...Array(2).fill('error[E0425]: cannot find value `x`')),
  })
  assert.deepEqual(codes, [1, 1])
  const text = lines.join('\n')
  assert.match(text, /✖ failures\n[^]* {4}assertion failed: 1 == 2\n[^]* {4}a::tests::two\n/)
  assert.match(text, /compiles\n✖ ended with 101\n {4}error\[E0425\]: cannot find value `x`\n/)
})

test('a step that fails in any other way has an entry, too', async () => {
  const args = ['-e', 'console.log(7); process.exit(4)']
  const { codes, lines } = await ended({
    throws: async () => Promise.reject(new Error('broken')),
    silent: async () => 3,
    program: (report) => shown('a program', report, process.execPath, args),
    passes: async () => 0,
  })
  assert.deepEqual(codes, [1, 3, 4, 0])
  const last = lines.slice(lines.indexOf('failed: throws, silent, program') + 1)
  assert.deepEqual(last, ['throws', '✖ throws', 'silent', '✖ silent', 'a program', '✖ ended with 4'])
  assert.match(lines.join('\n'), /✖ throws\n {4}Error: broken\n[^]*✖ ended with 4\n {4}7\n/)
})

test('what goes on beside the next steps decides as well', async () => {
  const { codes, lines } = await ended({
    later: (report) => {
      report.later = shown('judge', report, process.execPath, ['-e', 'process.exit(3)'])
      return Promise.resolve(0)
    },
    next: () => Promise.resolve(0),
  })
  assert.deepEqual(codes, [3, 0])
  assert.match(lines.join('\n'), /what failed on judge\n✖ ended with 3/)
})

test('the last lines are few', () => {
  const failures = Array.from({ length: 50 }, (_, at) => `file ${at}\n${entry('test', 'x\n')}`)
  const results = [{ name: 'planted', code: 1, seconds: 1, report: { ...emptyReport(), failures } }]
  const lines = ending(results).split('\n')
  const last = lines.slice(lines.indexOf('failed: planted') + 1)
  assert.deepEqual([last.length, last.at(-1)], [61, '… and 40 more, above'])
})

test('the table has every step, with what runs it', () => {
  const names = STEPS.map(({ name }) => name)
  assert.equal(new Set(names).size, names.length)
  for (const name of names) assert.match(listed(), new RegExp(`^${name} +(npm test|test:all|named) `, 'm'))
})
