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

/**
 * Rule, files and the lines of findings: ['rule', {path: text}, ['path:line word', ...]].
 * @param {string} rule
 * @param {Record<string, string>} texts
 * @param {string[]} expected `path:line` and words that the message has.
 */
function check(rule, texts, expected) {
  tested.add(rule)
  const found = RULES[rule](treeOf(texts))
  const positions = found.map(({ path, line }) => `${path}:${line}`)
  assert.deepEqual(
    positions,
    expected.map((text) => text.split(' ')[0]),
  )
  for (const [index, text] of expected.entries()) {
    for (const word of text.split(' ').slice(1))
      assert.ok(found[index].message.includes(word), found[index].message)
  }
}

test('header: a file opens with two lines on why it exists', () => {
  check('header', { 'src/a/x.ts': 'export {}\n' }, ['src/a/x.ts:1 opens'])
  check('header', { 'src/a/x.ts': '/** The x. */\nexport {}\n' }, ['src/a/x.ts:1'])
  check('header', { 'scripts/x.mjs': '#!/usr/bin/env node\n// One.\nlet a\n' }, ['scripts/x.mjs:1'])
  check('header', { 'crates/bridge/src/lib.rs': '//! One line.\nfn a() {}\n' }, [
    'crates/bridge/src/lib.rs:1',
  ])
  check(
    'header',
    { 'src/a/x.ts': `${HEADER}export {}`, 'crates/bridge/src/lib.rs': '//! One.\n//! Two.\n' },
    [],
  )
  check('header', { 'test/x.test.mjs': '#!/usr/bin/env node\n// One.\n// Two.\n' }, [])
})

test('line-length: 111 characters are too many, 110 are not, and a smiley is one', () => {
  check('line-length', { 'src/a/x.ts': `//\n// ${'x'.repeat(108)}\n` }, ['src/a/x.ts:2 111'])
  check('line-length', { 'src/a/x.ts': `// ${'😀'.repeat(107)}\n`, 'docs/x.md': 'x'.repeat(200) }, [])
})

test('file-length: above 400 lines a source opens with the reason; tests are exempt', () => {
  const lines = (count) => '//\n'.repeat(count)
  check('file-length', { 'src/a/x.ts': lines(401), 'crates/a/src/x.rs': lines(401) }, [
    'src/a/x.ts:1 401',
    'crates/a/src/x.rs:1 401',
  ])
  check('file-length', { 'src/a/x.ts': lines(400), 'src/a/x.test.ts': lines(401) }, [])
  check(
    'file-length',
    { 'src/a/x.ts': `/**\n * One. Over\n * 400 lines: one class.\n */\n${lines(400)}` },
    [],
  )
})

test('system-choice: one file of a crate asks for the system', () => {
  const asks = [
    'use std::io;',
    '#[cfg(target_os = "macos")]',
    '#[cfg(unix)]',
    'if !cfg!(windows) {}',
    '#[cfg_attr(not(windows), allow(dead_code))]',
  ]
  const text = asks.join('\n')
  const file = 'crates/bridge/src/registry.rs'
  check(
    'system-choice',
    { [file]: text },
    [2, 4, 5].map((line) => `${file}:${line} SYSTEM_FILES`),
  )
  check('system-choice', { 'crates/bridge/src/system/platform.rs': text, 'src/a/x.ts': text }, [])
})

test('crate-table: crates depend one way and only the binding sees napi', () => {
  const manifest = (text) => `[package]\nname = "a"\n\n[dependencies]\n${text}\n`
  check('crate-table', { 'crates/bridge/Cargo.toml': manifest('napi = "3"') }, [
    'crates/bridge/Cargo.toml:5 napi',
  ])
  const table = { 'crates/bridge/Cargo.toml': '[dependencies.napi-sys]\nversion = "3"' }
  check('crate-table', table, ['crates/bridge/Cargo.toml:1 napi-sys'])
  const up = manifest('corespun-store = { path = "../store" }')
  check('crate-table', { 'crates/bridge/Cargo.toml': up }, ['crates/bridge/Cargo.toml:5 store'])
  check('crate-table', { 'crates/odd/Cargo.toml': manifest('') }, ['crates/odd/Cargo.toml:1 table'])
  check(
    'crate-table',
    { 'crates/node/Cargo.toml': manifest('napi = "3"\ncorespun-bridge = { path = "../bridge" }') },
    [],
  )
  check(
    'crate-table',
    { 'crates/bridge/Cargo.toml': '[dev-dependencies]\ncorespun-store = { path = "../store" }' },
    [],
  )
})

test('folders: the code map and the disk are the same', () => {
  const map = (...lines) => `# A\n\n## Code map\n\n\`\`\`text\n${lines.join('\n')}\n\`\`\`\n`
  const file = { 'src/zone/x.ts': '' }
  const path = 'docs/ARCHITECTURE.md'
  check('folders', { ...file, [path]: map('src/  code', '  zone/  zones', 'docs/') }, [])
  check('folders', { ...file, [path]: map('src/  code', 'docs/') }, [`${path}:1 src/zone/`])
  check('folders', { ...file, [path]: map('src/', '  zone/', '  removed/', 'docs/') }, [
    `${path}:8 src/removed/`,
  ])
  check('folders', file, [`${path}:1 exist`])
})

test('version: one in both manifests', () => {
  const cargo = (version) => `[workspace.package]\nversion = "${version}"\n`
  const npm = '{"version": "0.1.0"}'
  check('version', { 'package.json': npm, 'Cargo.toml': cargo('0.2.0') }, ['Cargo.toml:1 0.2.0'])
  check('version', { 'package.json': npm, 'Cargo.toml': cargo('0.1.0') }, [])
})

test('lock: without a registry', () => {
  const lock = (packages) => ({ 'package-lock.json': JSON.stringify({ packages }) })
  const hosted = lock({ 'node_modules/a': { resolved: 'https://example.org/a.tgz' } })
  check('lock', hosted, ['package-lock.json:1 downloaded'])
  check('lock', lock({ 'node_modules/a': {}, 'node_modules/b': { resolved: 'b', link: true } }), [])
})

test('record: a number of a document is the one that was recorded', () => {
  const record = {
    'bench/records/r.json': '{"rows": [{"p50": 1.2345}], "rate": 1532100}',
    'docs/numbers.md': '# Numbers',
  }
  const readme = (...lines) => ({ ...record, 'README.md': ['# S', '## Numbers', ...lines].join('\n') })
  check('record', readme('| a | 1.23 µs <!-- record: r.json#rows.0.p50 --> |'), [])
  check('record', readme('| a | 1,532,100 <!-- record: r.json#rate --> |'), [])
  check(
    'record',
    readme('So 1.2 µs <!-- record: r.json#rows.0.p50 -->, 1.235 <!-- record: r.json#rows.0.p50 -->'),
    [],
  )
  check('record', readme('| a | 1.24 µs <!-- record: r.json#rows.0.p50 --> |'), ['README.md:3 1.24 1.2345'])
  check('record', readme('| a | 1 <!-- record: s.json#a --> |'), ['README.md:3 exist'])
  check('record', readme('| a | 1 <!-- record: r.json#rows --> |'), ['README.md:3 rows'])
  const load = (loadBefore) => ({
    'bench/records/l.json': JSON.stringify({ machine: { cores: 2, loadBefore }, p50: 4 }),
    'README.md': '',
    'docs/numbers.md': '# Numbers\n| a | 4 µs <!-- record: l.json#p50 --> |',
  })
  check('record', load(1), [])
  check('record', load(1.01), ['docs/numbers.md:2 l.json busy'])
  check('record', readme('| Node 24 | 17 µs |'), ['README.md:3 17'])
  check('record', readme('| Node 24 | not measured |', '## Next', '| a | 17 |'), [])
})

test('current-record: one of each table and Node', () => {
  const records = (...names) => Object.fromEntries(names.map((name) => [`bench/records/${name}.json`, '{}']))
  const day = '2026-11-22T112134'
  check('current-record', records(`${day}-a-node24`, `${day}-a-node26`, `${day}-a-node24-quick`), [])
  const two = records('2026-11-21T112134-a-node24', `${day}-a-node24`)
  check('current-record', two, [`bench/records/${day}-a-node24.json:1 older`])
})

test('words: one that may not come back', () => {
  const word = ['pum', 'ps'].join('')
  check('words', { 'src/planted/x.ts': `//\n// It ${word}.` }, [`src/planted/x.ts:2 ${word}`])
  check(
    'words',
    {
      'src/a/x.ts': '// It waits.',
      'src/a/x.json': word,
      'bench/records/a.md': word,
      'scripts/tidy/rules/words.mjs': word,
    },
    [],
  )
})

test('without git the same files are looked at', () => {
  const byGit = readTree(ROOT).sources.map(({ path }) => path)
  const byHand = new Set(notIgnored(ROOT))
  assert.deepEqual(
    byGit.filter((path) => !byHand.has(path)),
    [],
  )
  assert.equal(byHand.size, byGit.length)
})

/**
 * What oxlint reports by our .oxlintrc.json for a checkout with these files: `path:line rule`, sorted.
 * @param {Record<string, string>} texts
 */
async function lint(texts) {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-lint-'))
  try {
    copyFileSync(inRoot('.oxlintrc.json'), join(folder, '.oxlintrc.json'))
    const strict = {
      compilerOptions: {
        strict: true,
        module: 'nodenext',
        types: [],
        noEmit: true,
        allowImportingTsExtensions: true,
      },
    }
    for (const [path, text] of Object.entries({ ...texts, 'tsconfig.json': JSON.stringify(strict) })) {
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
  check('ranks', { 'src/zone/call/x.ts': from('../api/y.ts') }, ['src/zone/call/x.ts:3 src/zone/api/y.ts'])
  check('ranks', { 'src/zone/errors.ts': from('./ground/y.ts') }, ['src/zone/errors.ts:3 rank'])
  check('ranks', { 'src/zone/api/x.ts': from('../index.ts') }, ['src/zone/api/x.ts:3 src/zone/index.ts'])
  const hidden = "//\n//\nconst { y } = await import('../owner/y.ts')\n"
  check('ranks', { 'src/zone/stream/carried/x.ts': hidden.replace('../', '../../') }, [
    'src/zone/stream/carried/x.ts:3 src/zone/owner/y.ts',
  ])
  const good = {
    'src/zone/api/x.ts':
      from('../call/y.ts') + from('./y.ts') + from('../errors.ts') + from('../../base/y.ts'),
    'src/zone/call/x.test.ts': from('../api/y.ts'),
    'src/zone/call/x.ts': `/**\n * ${from('../api/y.ts')}*/`,
    'src/zone/index.ts': from('./api/y.ts'),
  }
  check('ranks', good, [])
  // An exception that is not needed any more.
  check('ranks', { 'src/zone/owner/hook-times.ts': '//\n//\n' }, ['src/zone/owner/hook-times.ts:1 remove'])
})

test('circles: modules of a crate use each other in one direction', () => {
  const [x, y, z] = ['x', 'y/mod', 'y/z'].map((name) => `crates/bridge/src/${name}.rs`)
  check(
    'circles',
    { [x]: 'use crate::{\n  sync,\n  y::z::{A, B},\n};\n', [z]: 'fn f(x: super::super::x::X) {}\n' },
    [`${x}:1 y::z`, `${z}:1 uses x`],
  )
  const three = { [x]: '//! Text.\nuse crate::y;\n', [y]: 'use self::z::A;\n', [z]: 'use crate::x::X;\n' }
  check('circles', three, [`${x}:2 y`, `${y}:1 y::z`, `${z}:1 x`])
  const outside = { 'crates/http/src/x.rs': 'use crate::y;\n', 'crates/store/src/y.rs': 'use crate::x;\n' }
  const tested = '#[cfg(test)]\nmod tests {\n  use crate::x;\n}\n'
  check('circles', { ...outside, [x]: 'use crate::y::{self, z};\n', [y]: `mod z;\n${tested}` }, [])
  check('circles', { [x]: 'use crate::y;\n', [y]: '// See crate::x.\n', [z]: 'use super::A;\n' }, [])
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
