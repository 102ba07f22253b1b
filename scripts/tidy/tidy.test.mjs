/**
 * Each rule of tidy on a planted violation and on the same code put right.
 *
 * A rule that finds nothing in the checkout proves nothing by it; here every rule must find exactly what was
 * planted, at its line, and must stay silent on the good twin. The last test is that no rule lacks a case.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyExceptions, grown } from './exceptions.mjs'
import { ROOT } from '../set-up/index.mjs'
import { RULES } from './main.mjs'
import { notIgnored, readTree, treeOf } from './source.mjs'

const HEADER = '/**\n * Why it exists.\n * What it leaves out.\n */\n'
const long = (lines) => Array.from({ length: lines }, (_, index) => `  let a${index} = ${index}`).join('\n')
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
  const places = found.map(({ path, line }) => `${path}:${line}`)
  assert.deepEqual(
    places,
    expected.map((text) => text.split(' ')[0]),
  )
  for (const [index, text] of expected.entries()) {
    for (const word of text.split(' ').slice(1))
      assert.ok(found[index].message.includes(word), found[index].message)
  }
}

test('header: a file opens with two lines that say why', () => {
  check('header', { 'src/a/x.ts': 'export {}\n' }, ['src/a/x.ts:1 says'])
  check('header', { 'src/a/x.ts': '/** The x. */\nexport {}\n' }, ['src/a/x.ts:1'])
  check('header', { 'scripts/x.mjs': '#!/usr/bin/env node\n// One.\nlet a\n' }, ['scripts/x.mjs:1'])
  check('header', { 'crates/port/src/lib.rs': '//! One line.\nfn a() {}\n' }, ['crates/port/src/lib.rs:1'])
  check(
    'header',
    { 'src/a/x.ts': `${HEADER}export {}`, 'crates/port/src/lib.rs': '//! One.\n//! Two.\n' },
    [],
  )
  check('header', { 'test/x.test.mjs': '#!/usr/bin/env node\n// One.\n// Two.\n' }, [])
})

test('syntax: a file that does not parse is named, unless a test needs it so', () => {
  check('syntax', { 'src/a/x.ts': `${HEADER}let a: = 1` }, ['src/a/x.ts:5'])
  check('syntax', { 'test/cli/broken.mjs': 'let = {', 'src/a/x.ts': 'let a: number = 1' }, [])
})

test('line-length: 111 characters are too many, 110 are not, and a smiley is one', () => {
  check('line-length', { 'src/a/x.ts': `//\n// ${'x'.repeat(108)}\n` }, ['src/a/x.ts:2 111'])
  check('line-length', { 'src/a/x.ts': `// ${'😀'.repeat(107)}\n`, 'docs/x.md': 'x'.repeat(200) }, [])
})

test('function-size: 70 lines fit, 71 do not, in either language', () => {
  check('function-size', { 'src/a/x.ts': `\nfunction big() {\n${long(69)}\n}` }, ['src/a/x.ts:2 big 71'])
  check('function-size', { 'src/a/x.ts': `const big = () => {\n${long(69)}\n}` }, ['src/a/x.ts:1 big'])
  check('function-size', { 'src/a/x.ts': `class A { m() {\n${long(69)}\n} }` }, ['src/a/x.ts:1 m'])
  check('function-size', { 'src/a/x.test.ts': `test('t', () => {\n${long(69)}\n})` }, [
    'src/a/x.test.ts:1 "t"',
  ])
  check('function-size', { 'src/a/x.ts': `function fits() {\n${long(68)}\n}` }, [])
  check('function-size', { 'src/a/x.test.ts': `describe('d', () => {\n${long(99)}\n})` }, [])
  const rust = (lines) =>
    `\nimpl X {\n    fn big(&self) -> [u8; 4] {\n${'let a = "}";\n'.repeat(lines)}}\n fn other() {} }`
  check('rust-function-size', { 'crates/port/src/a.rs': rust(69) }, ['crates/port/src/a.rs:3 big 71'])
  check('rust-function-size', { 'crates/port/src/a.rs': rust(68) }, [])
})

test('export-doc: exports are documented, and a throw is named', () => {
  check('export-doc', { 'src/a/x.ts': 'export function f() {}' }, ['src/a/x.ts:1 f documentation'])
  check('export-doc', { 'src/a/x.ts': 'const a = 1\nexport interface I {}\n' }, ['src/a/x.ts:2 I'])
  check('export-doc', { 'src/a/x.ts': 'function f() {}\nexport { f }' }, ['src/a/x.ts:1 f'])
  check('export-doc', { 'src/a/x.ts': 'export default class {}' }, ['src/a/x.ts:1 default'])
  const thrower = 'export function f() { throw new Error() }'
  check('export-doc', { 'src/a/x.ts': `/** F. */\n${thrower}` }, ['src/a/x.ts:2 @throws'])
  check('export-doc', { 'src/a/x.ts': `/** F. */\nexport const f = () => { throw 1 }` }, [
    'src/a/x.ts:2 @throws',
  ])
  const method = '/** C. */\nexport class C {\n  m() { if (this) throw new Error() }\n}'
  check('export-doc', { 'src/a/x.ts': method }, ['src/a/x.ts:3 C.m'])
})

test('export-doc: what is documented, private, or a broken invariant passes', () => {
  check(
    'export-doc',
    { 'src/a/x.ts': '/** F. @throws {E} */\nexport function f() { throw new Error() }' },
    [],
  )
  check(
    'export-doc',
    { 'src/a/x.ts': '/** F. */\nexport function f() { throw new AssertionFailure("") }' },
    [],
  )
  check('export-doc', { 'src/a/x.ts': '/** F. */\nexport function f() { return () => { throw 1 } }' }, [])
  check(
    'export-doc',
    { 'src/a/x.ts': '/** C. */\nexport class C { #m() { throw 1 } private n() { throw 1 } }' },
    [],
  )
  check('export-doc', { 'src/a/x.ts': 'function f() { throw 1 }' }, [])
  check('export-doc', { 'src/a/x.ts': '/** Both. */\nexport const A = 1\nexport const B = 2' }, [])
  check('export-doc', { 'src/a/x.ts': '/** A. */\nexport const A = 1\n\nexport const B = 2' }, [
    'src/a/x.ts:4 B',
  ])
  const overloads =
    '/** F. */\nexport function f(a: 1): void\nexport function f(a: 2): void\nexport function f() {}'
  check('export-doc', { 'src/a/x.ts': overloads }, [])
})

test('any: only where the engine is touched', () => {
  check('any', { 'src/zone/x.ts': '\nlet a: any[] = []' }, ['src/zone/x.ts:2'])
  check('any', { 'src/native/x.ts': 'let a: any', 'src/zone/x.ts': 'let a: unknown // any\nlet any = 1' }, [])
})

test('import-table: imports point down, and every module has a rank', () => {
  const up = "\nimport { zone } from '../zone/index.ts'"
  check('import-table', { 'src/base/x.ts': up }, ['src/base/x.ts:2 base zone'])
  check('import-table', { 'src/store/x.ts': "import type { L } from '../sync/index.ts'" }, [
    'src/store/x.ts:1',
  ])
  check('import-table', { 'src/base/x.ts': "const z = import('../zone/index.ts')" }, ['src/base/x.ts:1'])
  check('import-table', { 'src/base/x.ts': "export * from '../zone/index.ts'" }, ['src/base/x.ts:1'])
  check('import-table', { 'src/zone/x.ts': "import '../../scripts/x.mjs'" }, ['src/zone/x.ts:1 outside'])
  check('import-table', { 'src/odd/x.ts': '' }, ['src/odd/x.ts:1 table'])
  check('import-table', { 'src/base/x.ts': "import { zone } from 'skein/zone'" }, [
    'src/base/x.ts:1 base zone',
  ])
  check('import-table', { 'src/zone/x.ts': "import * as all from 'skein'" }, ['src/zone/x.ts:1 .'])
  check('import-table', { 'src/base/x.ts': "\nrequire('../zone/index.js')" }, ['src/base/x.ts:2 base zone'])
  check('import-table', { 'src/base/x.ts': "createRequire(import.meta.url)('../zone/index.js')" }, [
    'src/base/x.ts:1 base zone',
  ])
  check('import-table', { 'src/base/x.ts': 'import(`../zone/index.ts`)' }, ['src/base/x.ts:1 base zone'])
  const unseen =
    "new URL('../zone/worker.js', import.meta.url)\nrequire('../../package.json')\nrequire('acorn')"
  check('import-table', { 'src/base/x.ts': unseen }, [])
  check(
    'import-table',
    { 'src/cli/x.ts': up, 'src/zone/x.ts': "import '../base/index.ts'\nimport './y.ts'" },
    [],
  )
})

test('door: other folders by index.ts, the own one never by it', () => {
  check('door', { 'src/zone/x.ts': "import '../base/errors.ts'" }, ['src/zone/x.ts:1 base'])
  check('door', { 'src/zone/x.ts': "import './index.ts'" }, ['src/zone/x.ts:1 own'])
  check('door', { 'src/zone/loader/x.ts': "import '../index.ts'" }, ['src/zone/loader/x.ts:1 own'])
  check('door', { 'src/zone/x.ts': "import '../base/index.ts'\nimport './loader/y.ts'" }, [])
  check('door', { 'src/zone/x.test.ts': "import './index.ts'; import('../transport/index.js')" }, [])
})

test('cycle: circles of two, of three, of types, and none', () => {
  const file = (...targets) => targets.map((target) => `import type {} from './${target}.ts'`).join('\n')
  check('cycle', { 'src/a/x.ts': file('y'), 'src/a/y.ts': file('x') }, ['src/a/x.ts:1 src/a/y.ts'])
  check('cycle', { 'src/a/x.ts': file('y'), 'src/a/y.ts': file('z'), 'src/a/z.ts': file('x') }, [
    'src/a/x.ts:1',
  ])
  check('cycle', { 'src/a/x.ts': file('y', 'z'), 'src/a/y.ts': file('z'), 'src/a/z.ts': '' }, [])
  const byName = { 'src/a/index.ts': "export * from './x.ts'", 'src/a/x.ts': "require('skein/a')" }
  check('cycle', byName, ['src/a/index.ts:1 src/a/x.ts'])
})

test('crate-table: crates depend one way and only the binding sees napi', () => {
  const manifest = (text) => `[package]\nname = "a"\n\n[dependencies]\n${text}\n`
  check('crate-table', { 'crates/port/Cargo.toml': manifest('napi = "3"') }, [
    'crates/port/Cargo.toml:5 napi',
  ])
  const table = { 'crates/port/Cargo.toml': '[dependencies.napi-sys]\nversion = "3"' }
  check('crate-table', table, ['crates/port/Cargo.toml:1 napi-sys'])
  const up = manifest('skein-store = { path = "../store" }')
  check('crate-table', { 'crates/port/Cargo.toml': up }, ['crates/port/Cargo.toml:5 store'])
  check('crate-table', { 'crates/odd/Cargo.toml': manifest('') }, ['crates/odd/Cargo.toml:1 table'])
  check(
    'crate-table',
    { 'crates/node/Cargo.toml': manifest('napi = "3"\nskein-port = { path = "../port" }') },
    [],
  )
  check(
    'crate-table',
    { 'crates/port/Cargo.toml': '[dev-dependencies]\nskein-store = { path = "../store" }' },
    [],
  )
})

test('rust-cycle: modules of a crate use each other one way', () => {
  const path = (name) => `crates/port/src/${name}.rs`
  const both = { [path('a')]: 'use crate::b::B;', [path('b')]: 'use super::{a::A, c};', [path('c')]: '' }
  check('rust-cycle', both, [`${path('a')}:1 port::b`])
  const tests = '#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}'
  check('rust-cycle', { [path('a')]: 'use crate::b::B;', [path('b')]: tests }, [])
  check('rust-cycle', { [path('lib')]: 'use crate::a::A;', [path('a')]: 'use crate::Limit; // crate::b' }, [])
})

test('rust-cycle: a path in a nested group, from self, from a child, in code', () => {
  const path = (name) => `crates/port/src/${name}.rs`
  const nested = 'use crate::{\n    a::{self, A as Other},\n    c,\n};'
  const used = { [path('a')]: '\nuse crate::{c::{D, E}, b::{B}};', [path('b')]: nested, [path('c')]: '' }
  check('rust-cycle', used, [`${path('a')}:2 port::b`])
  const siblings = { [path('z/a')]: 'use super::b::B;', [path('z/b')]: 'use super::{A, Z};' }
  const found = [`${path('z/a')}:1 port::z::b`]
  check('rust-cycle', { ...siblings, [path('z/mod')]: 'mod a;\nmod b;\npub use self::a::A;' }, found)
  check('rust-cycle', { ...siblings, [path('z/mod')]: 'mod a;\nmod b;\nuse a::A;\nstruct Z;' }, found)
  check('rust-cycle', { ...siblings, [path('z/mod')]: 'mod a;\nmod b;\nstruct A;' }, [])
  const inCode = {
    [path('a')]: 'fn f() { crate::b::g(); }',
    [path('b')]: 'use crate as all;\nfn g() { all::a::f(); }',
  }
  check('rust-cycle', inCode, [`${path('a')}:1 port::b`])
  const inline = 'mod one { use super::two::T; }\nmod two { use self::super::one::S; }'
  check('rust-cycle', { [path('a')]: inline }, [`${path('a')}:1 port::a::two`])
  const macro = '#[macro_export]\nmacro_rules! m { () => { $crate::b::g() } }'
  check('rust-cycle', { [path('a')]: macro, [path('b')]: 'use crate::m;' }, [`${path('a')}:2 port::b`])
})

test('rust-cycle: a module and what lies in it are one, against all others', () => {
  const path = (name) => `crates/port/src/${name}.rs`
  const unit = {
    [path('z')]: 'mod a;\npub use a::A;\nstruct Z(A);',
    [path('z/a')]: 'use super::Z;\nuse crate::y::Y;',
  }
  check('rust-cycle', { ...unit, [path('y')]: 'struct Y;' }, [])
  check('rust-cycle', { ...unit, [path('y')]: 'use crate::z;' }, [`${path('y')}:1 port::z`])
  const tested = { [path('z')]: '#[cfg(test)]\nmod tests;', [path('z/tests')]: 'use crate::y::Y;' }
  check('rust-cycle', { ...tested, [path('y')]: 'use crate::z;' }, [])
})

test('unwrap: only in tests', () => {
  check('unwrap', { 'crates/port/src/a.rs': '\nfn f() { g().unwrap(); }' }, ['crates/port/src/a.rs:2'])
  const fine =
    'fn f() { g().expect("x.unwrap()"); } // .unwrap()\n#[cfg(test)]\nmod tests { fn t() { g().unwrap(); } }'
  check('unwrap', { 'crates/port/src/a.rs': fine, 'crates/port/tests/a.rs': 'fn t() { g().unwrap(); }' }, [])
  const after = '#[cfg(test)]\nmod tests;\nfn f() { g().unwrap(); }'
  check('unwrap', { 'crates/port/src/a.rs': after }, ['crates/port/src/a.rs:3'])
})

test('folders: the code map and the disk are the same', () => {
  const map = (...lines) => `# A\n\n## Code map\n\n\`\`\`text\n${lines.join('\n')}\n\`\`\`\n`
  const file = { 'src/zone/x.ts': '' }
  const path = 'docs/ARCHITECTURE.md'
  check('folders', { ...file, [path]: map('src/  code', '  zone/  zones', 'docs/') }, [])
  check('folders', { ...file, [path]: map('src/  code', 'docs/') }, [`${path}:1 src/zone/`])
  check('folders', { ...file, [path]: map('src/', '  zone/', '  gone/', 'docs/') }, [`${path}:8 src/gone/`])
  check('folders', file, [`${path}:1 exist`])
})

test('version: one in both manifests', () => {
  const cargo = (version) => `[workspace.package]\nversion = "${version}"\n`
  const npm = '{"version": "0.1.0"}'
  check('version', { 'package.json': npm, 'Cargo.toml': cargo('0.2.0') }, ['Cargo.toml:1 0.2.0'])
  check('version', { 'package.json': npm, 'Cargo.toml': cargo('0.1.0') }, [])
})

test('lock: whole, and without a registry', () => {
  const lock = (packages) => ({ 'package-lock.json': JSON.stringify({ packages }) })
  const parent = { optionalDependencies: { 'a-linux-x64-gnu': '1.0.0' } }
  const lacking = lock({ 'node_modules/a': parent })
  check('lock', lacking, ['package-lock.json:1 a-linux-x64-gnu'])
  const hosted = lock({ 'node_modules/a': { resolved: 'https://example.org/a.tgz' } })
  check('lock', hosted, ['package-lock.json:1 downloaded'])
  check('lock', lock({ 'node_modules/a': parent, 'node_modules/a-linux-x64-gnu': {} }), [])
  check('lock', lock({ 'node_modules/a': parent, 'node_modules/a/node_modules/a-linux-x64-gnu': {} }), [])
})

test('record: a number of the README is the one that was recorded', () => {
  const record = { 'bench/records/r.json': '{"rows": [{"p50": 1.2345}], "rate": 1532100}' }
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
    'README.md': '## Numbers\n| a | 4 µs <!-- record: l.json#p50 --> |',
  })
  check('record', load(1), [])
  check('record', load(1.01), ['README.md:2 l.json busy'])
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

test('exceptions cover what they name, complain when idle, and may not grow', () => {
  const finding = { rule: 'any', path: 'src/a.ts', line: 3, subject: 'any', message: '' }
  const complaints = (listed) => applyExceptions([finding], listed).map(({ rule, line }) => `${rule} ${line}`)
  assert.deepEqual(complaints({}), ['any 3'])
  assert.deepEqual(complaints({ any: ['src/a.ts any'] }), [])
  assert.deepEqual(complaints({ any: ['src/a.ts any', 'src/b.ts any'] }), ['exceptions 1'])
  assert.deepEqual(complaints({ door: ['src/a.ts any'] }), ['any 3', 'exceptions 1'])
  assert.equal(grown({ any: ['a', 'b'] }, { any: ['a'] }).length, 1)
  assert.equal(grown({ any: ['a'] }, { any: ['a', 'b'] }).length, 0)
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

test('every rule has a case above', () => {
  assert.deepEqual([...tested].sort(), Object.keys(RULES).sort())
})
