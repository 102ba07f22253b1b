/**
 * Each rule of tidy on a planted violation and on the same code put right.
 *
 * A rule that finds nothing in the checkout proves nothing by it; here every rule must find exactly what was
 * planted, at its line, and must stay silent on the good twin. The last test is that no rule lacks a case.
 */
import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { inRoot, ROOT, run } from '../set-up/index.mjs'
import { RULES } from './main.mjs'
import { notIgnored, readTree, treeOf } from './tree.mjs'

const HEADER = '/**\n * Why it exists.\n * What it leaves out.\n */\n'
const tested = new Set()

/** A source, a file of a crate and a manifest of one, for rules that look at such. */
const [X, RUST, CRATE] = ['src/a/x.ts', 'crates/bridge/src/lib.rs', 'crates/bridge/Cargo.toml']

/**
 * What a rule finds in these files.
 * @param {Record<string, string>} texts By path.
 * @param {...string} expected `path:line`, or `line` of the first file, and words that the message has.
 */
function check(rule, texts, ...expected) {
  tested.add(rule)
  const found = RULES[rule](treeOf(texts))
  const whole = expected.map((text) =>
    (/^\d/.test(text) ? `${Object.keys(texts)[0]}:${text}` : text).split(' '),
  )
  const positions = found.map(({ path, line }) => `${path}:${line}`)
  const lines = whole.map(([position]) => position)
  assert.deepEqual(positions, lines)
  for (const [index, [, ...words]] of whole.entries())
    for (const word of words) assert.ok(found[index].message.includes(word), found[index].message)
}

test('header: a file opens with two lines on why it exists', () => {
  check('header', { [X]: 'export {}\n' }, '1 opens')
  check('header', { [X]: '/** The x. */\nexport {}\n' }, '1')
  check('header', { 'scripts/x.mjs': '#!/usr/bin/env node\n// One.\nlet a\n' }, '1')
  check('header', { [RUST]: '//! One line.\nfn a() {}\n' }, '1')
  check('header', { [X]: `${HEADER}export {}`, [RUST]: '//! One.\n//! Two.\n' })
  check('header', { 'test/x.test.mjs': '#!/usr/bin/env node\n// One.\n// Two.\n' })
})

test('line-length: 111 characters are too many, 110 are not, and a smiley is one', () => {
  check('line-length', { [X]: `//\n// ${'x'.repeat(108)}\n` }, '2 111')
  check('line-length', { [X]: `// ${'😀'.repeat(107)}\n`, 'docs/x.md': 'x'.repeat(200) })
})

test('file-length: above 400 lines a source opens with the reason; tests are exempt', () => {
  const lines = (count) => '//\n'.repeat(count)
  check('file-length', { [X]: lines(401), [RUST]: lines(401) }, '1 401', `${RUST}:1 401`)
  check('file-length', { [X]: lines(400), 'src/a/x.test.ts': lines(401) })
  check('file-length', { [X]: `/**\n * One. Over\n * 400 lines: one class.\n */\n${lines(400)}` })
})

test('system-choice: one file of a crate asks for the system', () => {
  const attributes = ['#[cfg(unix)]', '#[cfg_attr(not(windows), allow(dead_code))]']
  const text = ['use std::io;', '#[cfg(target_os = "macos")]', 'if !cfg!(windows) {}', ...attributes].join(
    '\n',
  )
  const findings = [2, 3, 5].map((line) => `${line} SYSTEM_FILES`)
  check('system-choice', { 'crates/bridge/src/registry.rs': text }, ...findings)
  check('system-choice', { 'crates/bridge/src/system/platform.rs': text, [X]: text })
})

test('crate-table: crates depend one way and only the binding sees napi', () => {
  const manifest = (text) => `[package]\nname = "a"\n\n[dependencies]\n${text}\n`
  const store = 'corespun-store = { path = "../store" }'
  check('crate-table', { [CRATE]: manifest('napi = "3"') }, '5 napi')
  check('crate-table', { [CRATE]: '[dependencies.napi-sys]\nversion = "3"' }, '1 napi-sys')
  check('crate-table', { [CRATE]: manifest(store) }, '5 store')
  check('crate-table', { 'crates/odd/Cargo.toml': manifest('') }, '1 table')
  const binding = manifest('napi = "3"\ncorespun-bridge = { path = "../bridge" }')
  check('crate-table', { 'crates/node/Cargo.toml': binding })
  check('crate-table', { [CRATE]: `[dev-dependencies]\n${store}` })
})

test('folders: the code map and the disk are the same', () => {
  const map = (...lines) => `# A\n\n## Code map\n\n\`\`\`text\n${lines.join('\n')}\n\`\`\`\n`
  const path = 'docs/ARCHITECTURE.md'
  const checked = (text, ...expected) => check('folders', { [path]: text, 'src/zone/x.ts': '' }, ...expected)
  checked(map('src/  code', '  zone/  zones', 'docs/'))
  checked(map('src/  code', 'docs/'), '1 src/zone/')
  checked(map('src/', '  zone/', '  removed/', 'docs/'), '8 src/removed/')
  check('folders', { 'src/zone/x.ts': '' }, `${path}:1 exist`)
})

test('version: one in both manifests', () => {
  const manifests = (cargo) => ({
    'Cargo.toml': `[workspace.package]\nversion = "${cargo}"\n`,
    'package.json': '{"version": "0.1.0"}',
  })
  check('version', manifests('0.2.0'), '1 0.2.0')
  check('version', manifests('0.1.0'))
})

test('lock: without a registry', () => {
  const lock = (packages) => ({ 'package-lock.json': JSON.stringify({ packages }) })
  check('lock', lock({ 'node_modules/a': { resolved: 'https://example.org/a.tgz' } }), '1 downloaded')
  check('lock', lock({ 'node_modules/a': {}, 'node_modules/b': { resolved: 'b', link: true } }))
})

test('record: a number of a document is the one that was recorded', () => {
  const recorded = (text, machine) => ({
    'README.md': `# S\n## Numbers\n${text}`,
    'docs/numbers.md': '# Numbers',
    'docs/guide/heavy.md': '',
    'bench/records/r.json': JSON.stringify({ machine, rows: [{ p50: 1.2345 }], rate: 1532100 }),
  })
  const mark = (key) => `<!-- record: r.json#${key} -->`
  for (const text of [
    `| a | 1.23 µs ${mark('rows.0.p50')} |`,
    `| a | 1,532,100 ${mark('rate')} |`,
    `So 1.2 µs ${mark('rows.0.p50')}, 1.235 ${mark('rows.0.p50')}`,
    '| Node 24 | not measured |\n## Next\n| a | 17 |',
  ])
    check('record', recorded(text))
  check('record', recorded(`| a | 1.24 µs ${mark('rows.0.p50')} |`), '3 1.24 1.2345')
  check('record', recorded('| a | 1 <!-- record: s.json#a --> |'), '3 exist')
  check('record', recorded(`| a | 1 ${mark('rows')} |`), '3 rows')
  check('record', recorded('| Node 24 | 17 µs |'), '3 17')
  const loaded = (loadBefore) => ({
    ...recorded('', { cores: 2, loadBefore }),
    'docs/numbers.md': `# Numbers\n| a | 1,532,100 ${mark('rate')} |`,
  })
  check('record', loaded(1))
  check('record', loaded(1.01), 'docs/numbers.md:2 r.json busy')
})

test('recorded-cell: a published figure has a record, bytes need none, and one work fills two tables', () => {
  const rows = [{ key: 'r', cells: { a: 1, bytes: 9 } }]
  const seeds = { tables: ['s/1', 's/2'].map((id) => ({ id, work: 's/1', bench: 't', rows })) }
  const tree = (seed) => ({
    'bench/records/r.json': JSON.stringify({ rows: [{ seed }, {}] }),
    'bench/seeds/1.json': JSON.stringify(seeds),
  })
  check('recorded-cell', tree(['s/0/r/a', 's/1/r/a']))
  check('recorded-cell', tree('s/1/r/b'), ...['s/1', 's/2'].map(() => 'bench/records:1 s/1/r/a: t'))
})

test('current-record: one of each table, Node, processor and choice of sections', () => {
  const text = (cpu, sections = 'all') => JSON.stringify({ machine: { cpu }, parameters: { sections } })
  const older = { 'bench/records/2026-11-21T112134-a-node24.json': text('x') }
  const newer = 'bench/records/2026-11-22T112134-a-node24.json'
  check('current-record', { ...older, [newer]: text('y'), [newer.replace('24.', '26.')]: text('x') })
  check('current-record', { ...older, [newer]: text('x', 'one') })
  check('current-record', { ...older, [newer]: text('x') }, `${newer}:1 older`)
})

test('words: one that may not come back', () => {
  const word = ['pum', 'ps'].join('')
  check('words', { 'src/planted/x.ts': `//\n// It ${word}.` }, `2 ${word}`)
  const unseen = { 'src/a/x.json': word, 'bench/records/a.md': word, 'scripts/tidy/rules/words.mjs': word }
  check('words', { [X]: '// It waits.', ...unseen })
})

test('without git the same files are looked at', () => {
  const byGit = readTree(ROOT).sources.map(({ path }) => path)
  const byHand = new Set(notIgnored(ROOT))
  assert.deepEqual(new Set(byGit), byHand)
  assert.equal(byHand.size, byGit.length)
})

/** What oxlint reports by our .oxlintrc.json for a checkout with these files: `path:line rule`, sorted. */
async function lint(texts) {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-lint-'))
  try {
    copyFileSync(inRoot('.oxlintrc.json'), join(folder, '.oxlintrc.json'))
    const options = { module: 'nodenext', types: [], noEmit: true, allowImportingTsExtensions: true }
    const config = JSON.stringify({ compilerOptions: { strict: true, ...options } })
    for (const [path, text] of Object.entries({ ...texts, 'tsconfig.json': config })) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), text)
    }
    const oxlint = inRoot('node_modules', 'oxlint', 'bin', 'oxlint')
    const env = { ...process.env, OXLINT_TSGOLINT_PATH: inRoot('node_modules', '.bin', 'tsgolint') }
    const { output } = await run(process.execPath, [oxlint, '--format', 'unix', '.'], { cwd: folder, env })
    const found = output.matchAll(/^(\S+?:\d+):\d+: .*\[\w+\/(.+)\]$/gm)
    return [...found].map(([, position, rule]) => `${position} ${rule.replace(/^.*\((.*)\)$/, '$1')}`).sort()
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('ranks: inside a module, too, imports point down', () => {
  const from = (path, name = 'x') => `//\n//\nimport { ${name} } from '${path}'\n`
  check('ranks', { 'src/zone/call/x.ts': from('../api/y.ts') }, '3 src/zone/api/y.ts')
  check('ranks', { 'src/zone/errors.ts': from('./ground/y.ts') }, '3 rank')
  check('ranks', { 'src/zone/api/x.ts': from('../index.ts') }, '3 src/zone/index.ts')
  const hidden = "//\n//\nconst { y } = await import('../../owner/y.ts')\n"
  check('ranks', { 'src/zone/stream/carried/x.ts': hidden }, '3 src/zone/owner/y.ts')
  check('ranks', {
    'src/zone/api/x.ts': ['../call/y.ts', './y.ts', '../errors.ts', '../../base/y.ts']
      .map((path) => from(path))
      .join(''),
    'src/zone/call/x.test.ts': from('../api/y.ts'),
    'src/zone/call/x.ts': `/**\n * ${from('../api/y.ts')}*/`,
    'src/zone/index.ts': from('./api/y.ts'),
  })
  // An exception that is not needed any more.
  check('ranks', { 'src/zone/owner/hook-times.ts': '//\n//\n' }, '1 remove')
})

test('circles: modules of a crate use each other in one direction', () => {
  const [x, y, z] = ['x', 'y/mod', 'y/z'].map((name) => `crates/bridge/src/${name}.rs`)
  const nested = 'use crate::{\n  sync,\n  y::z::{A, B},\n};\n'
  check('circles', { [x]: nested, [z]: 'fn f(x: super::super::x::X) {}\n' }, '1 y::z', `${z}:1 uses x`)
  const three = { [x]: '//! Text.\nuse crate::y;\n', [y]: 'use self::z::A;\n', [z]: 'use crate::x::X;\n' }
  check('circles', three, '2 y', `${y}:1 y::z`, `${z}:1 x`)
  const outside = { 'crates/http/src/x.rs': 'use crate::y;\n', 'crates/store/src/y.rs': 'use crate::x;\n' }
  const tested = '#[cfg(test)]\nmod tests {\n  use crate::x;\n}\n'
  check('circles', { ...outside, [x]: 'use crate::y::{self, z};\n', [y]: `mod z;\n${tested}` })
  check('circles', { [x]: 'use crate::y;\n', [y]: '// See crate::x.\n', [z]: 'use super::A;\n' })
})

test('oxlint: imports point down, through doors, and never in a circle', async () => {
  const door = { 'src/base/index.ts': 'export const base = 1', 'src/zone/index.ts': 'export const zone = 1' }
  const uses = (name, from) => `import { ${name} } from '${from}'\nconsole.log(${name})`
  const rule = 'no-restricted-imports'
  const up = { ...door, 'src/base/x.ts': uses('zone', '../zone/index.ts') }
  assert.deepEqual(await lint(up), [`src/base/x.ts:1 ${rule}`])
  const typed = "import type { zone } from '../../zone/index.ts'\nexport type Z = typeof zone"
  assert.deepEqual(await lint({ ...door, 'src/store/deep/x.ts': typed }), [`src/store/deep/x.ts:1 ${rule}`])
  const past = { 'src/base/x.ts': 'export const x = 1', 'src/zone/x.ts': uses('x', '../base/x.ts') }
  assert.deepEqual(await lint(past), [`src/zone/x.ts:1 ${rule}`])
  const outside = { 'scripts/x.mjs': 'export const x = 1', 'src/zone/x.ts': uses('x', '../../scripts/x.mjs') }
  assert.deepEqual(await lint(outside), [`src/zone/x.ts:1 ${rule}`])
  const fine = { ...door, 'src/zone/deep/x.ts': uses('base', '../../base/index.ts') }
  assert.deepEqual(await lint(fine), [])
  const circle = (other) => `import type { A } from './${other}.ts'\nexport type B = A`
  const both = { 'src/base/x.ts': circle('y'), 'src/base/y.ts': circle('x') }
  assert.deepEqual(await lint(both), ['src/base/x.ts:1 no-cycle', 'src/base/y.ts:1 no-cycle'])
})

test('oxlint: sizes, any, promises that nobody waits for', async () => {
  const long = (lines) => `export function f() {\n${'  console.log(1)\n'.repeat(lines)}}\n`
  assert.deepEqual(await lint({ 'src/base/x.ts': long(69) }), ['src/base/x.ts:1 max-lines-per-function'])
  assert.deepEqual(await lint({ 'src/base/x.ts': long(68) }), [])
  const any = 'export const x: any[] = []'
  assert.deepEqual(await lint({ 'src/base/x.ts': any, 'src/native/x.ts': any }), [
    'src/base/x.ts:1 no-explicit-any',
  ])
  const floats = 'export function f(): void {\n  Promise.reject(new Error())\n}'
  assert.deepEqual(await lint({ 'src/base/x.ts': floats }), ['src/base/x.ts:2 no-floating-promises'])
  const misused = '[1].forEach(async (one) => console.log(await Promise.resolve(one)))'
  assert.deepEqual(await lint({ 'src/base/x.ts': misused }), ['src/base/x.ts:1 no-misused-promises'])
})

test('every rule has a case above', () => {
  assert.deepEqual([...tested].sort(), Object.keys(RULES).sort())
})
