/**
 * One source, compiled by several compilers for several targets: the verdict of `register` is the same.
 *
 * TypeScript and oxc compile here. What esbuild, Babel and swc write is a table of their output.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { register } from '../index.ts'
import type { Class } from '../class-entry.ts'
import { privateNames } from './private-names.ts'

const HIDING = ['Field', 'Unread', 'Method', 'Accessor', 'Below', 'Both', 'Anonymous', 'Money_$1']
const PLAIN = ['OnlyStatic', 'StaticByThis', 'Cached', 'Counted', 'Plain']
const SOURCE = `
const cache = new WeakMap<object, number>()
const _seen = new WeakSet<object>()
class Field { #x = 1; get x() { return this.#x } }
class Unread { #x = 1 }
class Method { #m() { return 1 } call() { return this.#m() } }
class Accessor { get #a() { return 1 } read() { return this.#a } }
class Below extends Field { y = 2 }
class Both { #x; #y = 2; constructor(x: number) { this.#x = x } sum() { return this.#x + this.#y } #z() {} }
const Anonymous = (() => class { #x = 1; get x() { return this.#x } })()
class Money_$1 { #cents = 1; has(other: object) { return #cents in other } }
class OnlyStatic { static #s = 1; static s() { return OnlyStatic.#s } }
class StaticByThis { static #s = 1; static s() { return this.#s } }
class Cached { constructor() { cache.set(this, 1) } get x() { return cache.get(this) } }
class Counted { constructor() { _seen.add(this) } }
class Plain { x = 1; call() { return Object.defineProperty({}, 'x', { value: this.x }) } }
`
const NAMES = [...HIDING, ...PLAIN]

/** The classes that compiled code defines. */
function classesOf(code: string): Record<string, Class> {
  const plain = code
    .replaceAll(/^import (\w+) from .*$/gm, 'const $1 = () => {}')
    .replaceAll(/^export .*$/gm, '')
  return new Function(`${plain}; return { ${NAMES.join(', ')} }`)() as Record<string, Class>
}

function check(code: string): void {
  const classes = classesOf(code)
  for (const name of HIDING) {
    const cid = `test.private.${name}`
    assert.throws(
      () => register(classes[name], { cid }),
      { code: 'TRANSPORT_REGISTRATION', message: /it has private members \((#|private methods)/ },
      `${name}: ${String(classes[name])}`,
    )
  }
  for (const name of PLAIN) assert.deepEqual(privateNames(classes[name]), [], String(classes[name]))
}

const COMPILER = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')

test('private members are refused as TypeScript compiles them, for every target', () => {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-private-'))
  try {
    const file = join(folder, 'classes.ts')
    writeFileSync(file, SOURCE)
    for (const target of ['es2015', 'es2020', 'es2021', 'es2022', 'esnext']) {
      const options = ['--target', target, '--module', 'esnext', '--outDir', folder, '--ignoreConfig']
      spawnSync(process.execPath, [COMPILER, file, ...options, '--types', ''])
      check(readFileSync(join(folder, 'classes.js'), 'utf8'))
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})

/** Prints what oxc makes of the source for each target; its threads stay until the process ends. */
const OXC = `
import { transformSync } from ${JSON.stringify(import.meta.resolve('rolldown/experimental'))}
const [source, ...targets] = process.argv.slice(1)
const compiled = (target) => transformSync('classes.ts', source, { target, sourceType: 'module' }).code
const codes = targets.map(compiled)
process.stdout.write(JSON.stringify(codes))`

test('private members are refused as oxc compiles them, for every target', () => {
  const targets = ['es2015', 'es2020', 'es2021', 'es2022', 'esnext']
  const words = ['--input-type=module', '--eval', OXC, '--', SOURCE, ...targets]
  const { stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8' })
  assert.equal(stderr, '')
  const codes = JSON.parse(stdout) as string[]
  assert.equal(codes.length, targets.length)
  for (const code of codes) check(code)
})

for (const [compiler, constructor, names] of [
  ['esbuild', '__privateAdd(this, _x, 1); __privateAdd(this, _Point_instances)', ['#x', 'private methods']],
  ['esbuild, an accessor', '__privateAdd(this, _y, 1)', ['#y']],
  ['Babel', '_classPrivateFieldInitSpec(this, _x, 1)', ['#x']],
  ['Babel, methods', '_classPrivateMethodInitSpec(this, _Point_brand)', ['private methods']],
  ['Babel, by @babel/runtime', '(0, _classPrivateFieldInitSpec2.default)(this, _x, 1)', ['#x']],
  [
    'Babel, loose',
    'Object.defineProperty(this, _x, { value: 1 }); _classPrivateFieldLooseBase(this, _x)[_x]',
    ['#x'],
  ],
  ['swc', '_class_private_field_init(this, _x, {\n  writable: true, value: 1 })', ['#x']],
  ['swc, methods', '_class_private_method_init(this, _m)', ['#m']],
  ['swc, by @swc/helpers', '(0, _class_private_field_init._)(this, _x, {})', ['#x']],
  [
    'swc, loose',
    'Object.defineProperty(this, _x, { value: 1 }); _class_private_field_loose_base(this, _x)[_x]',
    ['#x'],
  ],
  [
    'TypeScript with tslib',
    '_Point_x.set(this, 1); tslib_1.__classPrivateFieldGet(this, _Point_x, "f")',
    ['#x'],
  ],
  ['a WeakMap of the author', 'cache.set(this, 1); _points.add(this)', []],
  ['a property of the author', 'Object.defineProperty(this, key, { value: 1 })', []],
] as const)
  test(`${compiler}: private members are found in a class and in a function`, () => {
    const asClass = new Function(`return class Point { constructor() { ${constructor} } }`)() as Class
    const asFunction = new Function(`return function Point() { ${constructor} }`)() as Class
    for (const one of [asClass, asFunction]) assert.deepEqual(privateNames(one), names)
  })
