/**
 * Lifted functions against the functions themselves: each row is a module that is run as it is, and again
 * transformed, with every sent function compiled from what the plugin took of it. Positions are results too.
 */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire, SourceMap } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { capturesOf, functionByNumber, functionNumber } from '../transport/internal.ts'
import { stripTypes } from '../zone/internal.ts'
import { moduleOf } from './module.ts'
import { liftable } from './transform.ts'
import { importsZone } from './zones/modules.ts'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'corespun-plugin-')))
after(() => rmSync(folder, { recursive: true }))

const files: Readonly<Record<string, string>> = {
  'package.json': '{ "type": "module" }',
  'words.js': `export default (text) => text.toUpperCase()
export const last = (list) => list.at(-1)
export function where() { return 'words' }
`,
  'zones.js': `import { zone } from 'corespun'
export const cpu = zone.create('x'), list = [1, 2]
export { zone as all } from 'corespun'
export default cpu
`,
  'passed-on.js': "export { cpu as work, list } from './zones.js'\nexport * from './zones.js'\n",
  'compiled.cjs': 'exports.__esModule = true\nexports.default = 1\n',
  'written.js': 'export default (text) => `${text}!`\n',
  'common.cjs': 'exports.three = 3\nmodule.exports.four = () => 4\n',
  // A zone that calls at once: the function, or what was taken of it.
  'node_modules/corespun/package.json': `{ "type": "module",
    "exports": { ".": "./index.js", "./arrow": "./index.js", "./fiber": "./index.js",
      "./transport": "./transport.js" } }`,
  'node_modules/corespun/index.js': `const sent = (fn) => globalThis.corespunSent(fn)
const run = async (fn, ...args) => sent(fn)(...args)
const map = async (list, fn) => Promise.all(list.map((each) => sent(fn)(each)))
const broadcast = async (fn, args = []) => sent(fn)(...args)
const cpu = { run, map, broadcast, execute: broadcast, with: () => cpu }
const hooked = (id, { setup } = {}) => (setup === undefined ? cpu : { state: sent(setup)() })
export const zone = { cpu, create: hooked, getOrCreate: hooked, get: () => cpu, node: cpu }
const arrowOf = (run) => ({ run, map: (fn) => arrowOf((input) => sent(fn)(run(input))) })
export const lift = (fn) => arrowOf((input) => sent(fn)(input))
export const effect = lift, liftAsync = lift
export const arrow = { lift }
export const on = (zone, fn, ...args) => sent(fn)(...args)
`,
  'node_modules/corespun/transport.js': `export * from ${JSON.stringify(
    new URL('../transport/index.js', import.meta.url).href,
  )}\n`,
}
for (const [name, text] of Object.entries(files)) {
  mkdirSync(join(folder, name, '..'), { recursive: true })
  writeFileSync(join(folder, name), text)
}

const HEAD = `import { zone } from 'corespun'
import { lift } from 'corespun/arrow'
import upper, { last as tail, where } from './words.js'
import * as words from './words.js'
import { three } from './common.cjs'
import * as path from 'node:path'
import { basename } from 'node:path'
`
const POSITION = "new Error().stack.split('\\n')[1].match(/\\d+:\\d+/)[0]"

/** What a loader compiles an ES module to, for `require`. */
const compiled = { __esModule: true, default: (text: string) => `${text}!` }
const { cache } = createRequire(join(folder, 'x.js')) as unknown as { cache: Record<string, unknown> }
cache[join(folder, 'written.js')] = { exports: compiled, loaded: true, children: [] }

const holder = globalThis as { corespunSent?: (fn: Function) => unknown }
let modules = 0

/** Run a module as it is and transformed. `sent`: how many functions must have been taken. */
async function check(body: string, sent: number): Promise<void> {
  const source = `${HEAD}${body}\n`
  const file = join(folder, `module${modules++}.js`)
  const url = pathToFileURL(file).href
  const found = liftable(source, file)
  const code = found?.write({ file: JSON.stringify(url) }).code ?? source
  assert.equal(code.match(/, \$corespunUnit\d+[,)]/g)?.length ?? 0, sent, body)
  const taken: Function[] = []
  writeFileSync(file, source)
  holder.corespunSent = (fn) => fn
  const expected = await import(url)
  writeFileSync(`${file}.lifted.js`, code)
  holder.corespunSent = (fn) => {
    if (!code.includes(', $corespunUnit')) return fn
    taken.push(fn)
    const captures = capturesOf(fn)
    if (captures === undefined) return functionByNumber(functionNumber(fn))
    const make = functionByNumber(captures.number) as (...values: unknown[]) => unknown
    return make(...(structuredClone(captures.values) as unknown[]))
  }
  const received = await import(`${url}.lifted.js`)
  assert.deepEqual(received.result, expected.result, body)
  assert.equal(taken.length > 0, sent > 0, body)
}

const LIFTED: readonly (readonly [body: string, sent: number])[] = [
  ['export const result = await zone.cpu.run(() => 1)', 1],
  ['export const result = await zone.cpu.run((a, b = a + 1) => [a, b], 1)', 1],
  ['export const result = await zone.cpu.run((text) => upper(text), "x")', 1],
  [
    'export const result = await zone.cpu.run(() => [tail([1]), words.last([3]), basename("/a/b"), three])',
    1,
  ],
  ['export const result = await zone.cpu.run(() => path.join("a", words.default("b")))', 1],
  ['export const result = await zone.cpu.run(where)', 1],
  ['const list = words.default("ab")\nexport const result = await zone.cpu.map([...list], upper)', 1],
  ['const SIGN = "!", other = 1\nexport const result = await zone.cpu.run(() => 1)', 1],
  ['const SIGN = "!"\nconst MINUS = -1\nexport const result = await zone.cpu.run(() => SIGN + MINUS)', 1],
  ['export const result = await zone.cpu.run(f, 2)\nfunction f(n) { return n ? f(n - 1) : upper("y") }', 1],
  ['const b = (n) => a(n) * 2\nexport const a = (n) => n\nexport const result = await zone.cpu.run(b, 2)', 1],
  ['export const result = await zone.cpu.run(() => late()); function late() { return tail([4]) }', 1],
  ['export const result = await zone.cpu.run(function* () { yield 1 }).then((each) => [...each])', 1],
  ['export const result = await zone.cpu.run(async function () { return upper("z") })', 1],
  [
    'export const result = await zone.cpu.run(function () { return [typeof this, arguments.length] }, 1, 2)',
    1,
  ],
  ['export const result = await zone.cpu.run(() => { class A { v = tail([7]) } return new A().v })', 1],
  ['export const result = await zone.cpu.run(() => { const upper = 1; { let tail = 2 } return upper })', 1],
  ['export const result = await zone.cpu.run(({ a: { upper = 2 } = {} } = {}) => upper)', 1],
  ['export const result = await zone.cpu.run(() => ({ upper, tail: 1 }.tail))', 1],
  ['export const result = await zone.cpu.run(async () => (await import("./words.js")).where())', 1],
  ['export const result = await zone.cpu.run(() => import.meta.url.includes("/module"))', 1],
  ['export const result = await zone.cpu.run(() => typeof import.meta + import.meta["env"])', 1],
  ['export const result = await zone.cpu.map([1, 2], (n) => n + tail([n]))', 1],
  ['export const result = await zone.cpu.broadcast((n) => n + tail([n]), [3])', 1],
  ['export const result = await zone.cpu.execute((n) => n + tail([n]), [3])', 1],
  ['const cpu = zone.create("x")\nexport const result = await cpu.with({}).run(() => upper("q"))', 1],
  ['export const result = lift((n) => tail([n])).run(3)', 1],
  ['export const result = [await zone.cpu.run(() => upper("a")), await zone.cpu.run(() => upper("b"))]', 2],
  ['const deep = () => zone.cpu.run(() => upper("in"))\nexport const result = await deep()', 1],
  // What runs in each worker.
  ['export const result = zone.create("x", { setup: () => upper("s") }).state', 1],
  ['const setup = () => tail([8])\nexport const result = zone.create("x", { setup }).state', 1],
  [
    'const by = tail([2])\n' +
      'const made = zone.getOrCreate("x", { setup: () => by, teardown: (n) => tail([n]) })\n' +
      'export const result = made.state',
    2,
  ],
  ['export const result = zone.create("x", { setup() { return 1 }, workers: 2 }).state', 0],
  // Captured values.
  ['const list = [1]\nexport const result = await zone.cpu.run(() => list)', 1],
  ['const made = Math.abs(-1)\nexport const result = await zone.cpu.run(() => made)', 1],
  [
    'const { a, b: [c], ...d } = { a: 1, b: [2], e: 3 }\n' +
      'export const result = await zone.cpu.run(() => [a, c, d])',
    1,
  ],
  ['const one = 1, two = 2\nexport const result = await zone.cpu.run(() => one + two)', 1],
  ['let n = 1\nexport const result = await zone.cpu.run(() => n)', 1],
  [
    'const go = (n, { m } = { m: 2 }) => zone.cpu.run((k) => [n, m, k], 3)\n' +
      'export const result = await go(1)',
    1,
  ],
  [
    'const go = (n) => { const add = (m) => n + m; return zone.cpu.run(() => add(1)) }\n' +
      'export const result = await go(1)',
    1,
  ],
  [
    'const go = (n) => { function add(m) { return last(m) + n } return zone.cpu.run(add, [3]) }\n' +
      'const last = (a) => tail(a)\n' +
      'export const result = await go(1)',
    1,
  ],
  [
    'const all = []\nfor (let i = 0; i < 3; i++) all.push(zone.cpu.run(() => i))\n' +
      'export const result = await Promise.all(all)',
    1,
  ],
  [
    'const all = []\nfor (const i of [4, 5]) all.push(zone.cpu.map([1], (n) => n + i))\n' +
      'export const result = await Promise.all(all)',
    1,
  ],
  ['const go = (n) => lift((m) => n + m).run(2)\nexport const result = go(1)', 1],
  [`const go = (n) => zone.cpu.run((m) => [n, m, ${POSITION}], 2)\nexport const result = await go(1)`, 1],
  [
    `const go = (n) => zone.cpu.run((m) => {\n  return [n, m, ${POSITION}]\n}, 2)\n` +
      `export const result = await go(1)`,
    1,
  ],
  [`export const result = await zone.cpu.run(() => ${POSITION})`, 1],
  [`export const result = await zone.cpu.run(() => {\n  return [upper("a"),\n    ${POSITION}]\n})`, 1],
  [`export const result = await zone.cpu.run(help)\nfunction help() { return ${POSITION} }`, 1],
  [`const A = 1\nexport const result = await zone.cpu.map([1], (n) => n + A +\n ${POSITION})`, 1],
  [
    `const A = 1; const f = () => ${POSITION} + A; export const result = await zone.cpu.run(() => f() + 1)`,
    1,
  ],
  ['export const result = await zone.cpu.run(\r\n  () => upper("\u2028"),\r\n)', 1],
  // Default exports.
  ['import all from "./compiled.cjs"\nexport const result = await zone.cpu.run(() => all.default)', 1],
  ['import cry from "./written.js"\nexport const result = await zone.cpu.run(() => cry("a"))', 1],
  // Names mean what they mean where they are written.
  [
    'const a = 1\n' +
      'export const result = await zone.cpu.run((b = a, c = () => a) => { var a = 7; return [b, c(), a] })',
    1,
  ],
  [
    'const go = (n) => { switch (n) { case 1: const upper = n; return zone.cpu.run(() => upper) } }\n' +
      'export const result = await go(1)',
    1,
  ],
  [
    'const go = (n) => { switch (n) { case 1: { switch (n) { default: function tail() { return n }\n' +
      'return zone.cpu.run(() => tail()) } } } }\nexport const result = await go(1)',
    1,
  ],
  [
    'const go = (n) => { if (n) { var k = n + 1 }\nreturn zone.cpu.run(() => k) }\n' +
      'export const result = await go(1)',
    1,
  ],
  [
    'const meta = { go() {} }, target = meta\nexport const result = await zone.cpu.run(function () {\n' +
      'return [import.meta.url.includes("/module"), new.target] })',
    1,
  ],
  // A declaration of several constants is taken whole.
  [
    'const twice = (n) => once(n) * 2, once = (n) => n + ONE, ONE = 1\n' +
      'export const result = [await zone.cpu.run(twice, 1), await zone.cpu.run(() => ONE + once(1))]',
    2,
  ],
  [
    'const ONE = 1, next = () => made++\nlet made = 0\nexport const result = await zone.cpu.run(() => ONE)',
    1,
  ],
  // What a sent function sends is marked in its unit, too.
  ['export const result = await zone.cpu.run(() => zone.cpu.run(() => upper("x")))', 3],
  [
    'const go = (n) => zone.cpu.run((m) => zone.cpu.map([1], (k) => tail([n + m + k])), 2)\n' +
      'export const result = await go(3)',
    3,
  ],
  [
    'const deep = (n) => zone.cpu.run(() => zone.cpu.run(() => upper(n)))\n' +
      'export const result = await zone.cpu.run((n) => deep(n), "d")',
    // The outer unit has both of the others, the second one the third.
    6,
  ],
  [
    'const go = (n) => (n === 0 ? upper("end") : zone.node.run(go, n - 1))\n' +
      'export const result = await zone.cpu.run(go, 0)',
    3,
  ],
]

test('a lifted function returns what the function itself returns', async () => {
  for (const [body, sent] of LIFTED) await check(body, sent)
})

/** Where a zone comes from, as `make`; the same functions are sent each time. */
const ZONES: readonly string[] = [
  'const made = zone.create("x")\nconst go = (f) => made.run(SENT)',
  'let made\nmade = zone.create("x")\nconst go = (f) => made.run(SENT)',
  'let made = zone.cpu\nconst go = (f) => made.run(SENT)\nmade = zone.get("x")',
  'const go = (f) => made.run(SENT)\nconst made = zone.create("x")',
  'const { cpu } = zone\nconst go = (f) => cpu.run(SENT)',
  'const { cpu: made } = zone\nconst go = (f) => made.run(SENT)',
  'const zones = { cpu: zone.create("x"), list: [1] }\nconst go = (f) => zones.cpu.run(SENT)',
  'const go = (f, made = zone.cpu) => made.run(SENT)',
  'const go = (f, made = given ?? zone.cpu) => made.run(SENT)\nconst given = undefined',
  'const go = (f) => (f ? zone.get("x") : zone.cpu).run(SENT)',
  'const go = (f) => zone?.cpu?.run(SENT)',
  'import * as corespun from "corespun"\nconst go = (f) => corespun.zone.cpu.run(SENT)',
  'import { cpu } from "./zones.js"\nconst go = (f) => cpu.run(SENT)',
  'import made from "./zones.js"\nconst go = (f) => made.run(SENT)',
  'import * as zones from "./zones.js"\nconst go = (f) => zones.cpu.run(SENT)',
  'import { all } from "./zones.js"\nconst go = (f) => all.cpu.run(SENT)',
  'import { work } from "./passed-on.js"\nconst go = (f) => work.run(SENT)',
  'import { cpu } from "./passed-on.js"\nconst go = (f) => cpu.run(SENT)',
  'class A { made = zone.create("x"); go(f) { return this.made.run(SENT) } }\nconst go = () => new A().go()',
  'class A { #made = zone.cpu; go(f) { return (() => this.#made.run(SENT))() } }\n' +
    'const go = () => new A().go()',
  'class A { constructor() { this.made = zone.cpu } go(f) { return this.made.run(SENT) } }\n' +
    'const go = () => new A().go()',
  'class A { static made = zone.cpu; static go(f) { return this.made.run(SENT) } }\nconst go = () => A.go()',
  '/** @param {import("corespun").Zone} made */\nconst work = (made, f) => made.run(SENT)\n' +
    'const go = () => work(zone.cpu)',
  '/**\n * Works.\n * @param {number} f\n * @param {import("corespun").AnyZone | undefined} [made]\n */\n' +
    'function work(f, made) { return made.run(SENT) }\nconst go = () => work(1, zone.cpu)',
  '/** @typedef {import("corespun").Zone} Zone */\nclass A {\n/** @param {Zone} made */\n' +
    'static async go(made, f) { return made.run(SENT) } }\nconst go = () => A.go(zone.cpu)',
  '/** @import { Zone as Z } from "corespun/zone" */\nconst work = (of, f) => {\n/** @type {Z} */\n' +
    'const made = of[0]\nreturn made.run(SENT) }\nconst go = () => work([zone.cpu])',
  'class A {\n/** @type {import("corespun").Zone} */\nmade\nof(made) { this.made = made; return this }\n' +
    'go(f) { return this.made.run(SENT) } }\nconst go = () => new A().of(zone.cpu).go()',
  'import { on } from "corespun/fiber"\nconst go = (f) => on(f, SENT)',
  'import { arrow } from "corespun"\nconst go = (f) => arrow.lift(SENT).run()',
  'import { effect } from "corespun/arrow"\nconst go = (f) => effect(SENT).run()',
  'const go = (f) => lift(SENT).run()',
]
const SENT = '() => [upper("s"), tail([f ?? 2])]'

test('a zone is recognised by where it comes from, or by its type', async () => {
  for (const make of ZONES) await check(`${make.replace('SENT', SENT)}\nexport const result = await go()`, 1)
})

/** The same in TypeScript, whose types are blanks in what runs. */
const TYPED: readonly (readonly [body: string, sent: number])[] = [
  ['const work = (made: Zone) => made.run(SENT)', 1],
  ['const work = (made?: Zone) => made!.run(SENT)', 1],
  [
    'async function work(this: void, made: AnyZone | undefined): Promise<unknown> {\n' +
      'return made?.run(SENT) }',
    1,
  ],
  ['const work = (given: unknown) => { const made: Zone = given as Zone; return made.run(SENT) }', 1],
  ['const work = (given: unknown) => (given as Zone).run(SENT)', 1],
  [
    'const work = (given: unknown) => { let made: Zone | null = null; made = given as Zone\n' +
      'return made.run(SENT) }',
    1,
  ],
  [
    'class A { private readonly made: Zone; constructor(made: Zone) { this.made = made }\n' +
      'go() { return this.made.run(SENT) } }\nconst work = (made: Zone) => new A(made).go()',
    1,
  ],
  ['const work = (made: import("corespun").Zone) => made.run(SENT)', 1],
  ['const work = ([made]: Zone[]) => made.run(SENT)', 0],
  ['const work = (made: Zone[]) => made.map((each) => each)', 0],
  ['const work = (made: Zone["stats"]) => made.run(SENT)', 0],
  ['const work = (made: Zones) => made.run(SENT)', 0],
  ['const work = (made: { zone: Zone }) => made.zone.run(SENT)', 0],
]

test('in TypeScript a zone is recognised by its type', () => {
  for (const [body, sent] of TYPED) {
    const types = 'import { type Zone, type AnyZone } from "corespun"\ntype Zones = Zone[]\n'
    const original = `${types}${HEAD}${body.replace('SENT', SENT)}\nwork(zone.cpu)`
    const code = stripTypes(original, '/a.ts')
    const found = liftable(code, '/a.ts', false, original)?.write({ file: "''" }).code ?? ''
    assert.equal(found.split(', $corespunUnit').length - 1, sent, body)
  }
})

test('a constant that is closed at the end of its block holds a zone', () => {
  for (const word of ['using', 'await using']) {
    const found = liftable(`${HEAD}{ ${word} made = zone.create("x"); made.run(() => upper("x")) }`, '/a.js')
    assert.ok(found?.write({ file: "''" }).code.includes(', $corespunUnit0'), word)
  }
})

test('what other modules export is asked for only where it may be a zone', () => {
  const file = join(folder, 'asks.js')
  const rows: Readonly<Record<string, boolean>> = {
    "import { cpu } from './zones.js'\ncpu.run(() => 1)": true,
    "import { cpu } from './zones'\ncpu.map([], () => 1)": true,
    "import * as zones from './zones.js'\nzones.cpu.run(() => 1)": true,
    "import { list } from './zones.js'\nlist.map(() => 1)": false,
    "import { list } from './passed-on.js'\nlist.map(() => 1)": false,
    "import { cpu } from './zones.js'\nexport { cpu }": false,
    "import words from './words.js'\nwords.map(() => 1)": false,
    "import { cpu } from './none.js'\ncpu.run(() => 1)": false,
    "import { cpu } from 'zones'\ncpu.run(() => 1)": false,
  }
  for (const [code, isSent] of Object.entries(rows)) {
    assert.equal(importsZone(code, file), isSent, code)
    assert.equal(moduleOf(code, file, false) !== undefined, isSent, code)
  }
})

/** What depends on more than a copy has, or is not certainly sent. */
const LEFT: readonly string[] = [
  'class A {}\nexport const result = await zone.cpu.run(() => typeof A)',
  'const go = (n) => { n++; return zone.cpu.run(() => n) }\nexport const result = await go(1)',
  'const go = (n) => zone.cpu.run(() => n++)\nexport const result = await go(1)',
  'let n = 1\nn = 2\nexport const result = await zone.cpu.run(() => n)',
  'const n = [1], f = () => n\nexport const result = await (async (n) => zone.cpu.run(f))(2)',
  'const go = (fn) => zone.cpu.run(fn)\nexport const result = await go(() => 1)',
  'let count = 0\nfunction next() { return ++count }\nexport const result = await zone.cpu.run(() => next())',
  'function a() { return 1 }\nexport const result = await zone.cpu.run(a)\na = 1'.replace(
    '\na = 1',
    '\nif (!a) a = 1',
  ),
  'export const result = await zone.cpu.run((code) => eval(code), "1")',
  'export const result = [1].map((n) => upper(`${n}`))',
  'export const result = await zone.cpu.run(() => import.meta.env)',
  'export const result = await zone.cpu.run(() => import.meta?.hot)',
  'let n\nfor (n of [3]);\nexport const result = await zone.cpu.run(() => n)',
  'let n\nfor ({ n } of [{ n: 3 }]);\nexport const result = await zone.cpu.run(() => n)',
  'let n\nfor (n in { k: 1 });\nexport const result = await zone.cpu.run(() => n)',
  'const go = () => { if (three) { var k = 1; return zone.cpu.run(() => k) }\nk = 2 }\n' +
    'export const result = await go()',
  'const f = () => 1, g = () => made++\nlet made = 0\nexport const result = await zone.cpu.run(f)',
  'const zones = [zone]\nexport const result = await zones[0].cpu.run(() => 1)',
  'const { map } = [1], list = [2]\nexport const result = map.call(list, (n) => upper(`${n}`))',
  'const { run } = zone.cpu\nexport const result = await run(() => upper("x"))',
  'const zoneOf = () => zone.cpu\nexport const result = await zoneOf().run(() => upper("x"))',
  'const go = (options) => options.cpu.run(() => tail([1]))\nexport const result = await go(zone)',
  'let b, a = b\nb = a\nexport const result = b?.run(() => upper("x"))',
  'import { list } from "./zones.js"\nexport const result = list.map((n) => tail([n]))',
  'import * as all from "./zones.js"\nexport const result = all.list.map((n) => tail([n]))',
  'class A { list = [1]; go() { return this.list.map((n) => tail([n])) } }\n' +
    'export const result = new A().go()',
  'class A { cpu = zone.cpu; go() { const o = { cpu: [1], of() { return this.cpu.map((n) => n) } }\n' +
    'return o.of() } }\nexport const result = new A().go()',
  'const other = { run: (fn) => fn() }\nexport const result = await other.run(() => 1)',
  'export const result = await (function (zone) { return zone.cpu.run(() => 1) })(zone)',
  'export const result = ((lift) => lift(() => 1))((fn) => fn())',
]

test('what a copy would change, or is not certainly sent, is left as it is', async () => {
  for (const body of LEFT) await check(body, 0)
})

test('a function that cannot be sent is refused when the program is built, with its location', () => {
  const rows: readonly (readonly [body: string, code: string | undefined])[] = [
    ['class A { a = 1; go() { return zone.cpu.run(() => this.a) } }', 'FUNCTION_OUTER_THIS'],
    [
      'const cpu = zone.create("c")\nfunction go() { cpu.with({}).map([1], () => arguments) }',
      'FUNCTION_OUTER_THIS',
    ],
    ['function A() { zone.cpu.run(() => new.target) }', 'FUNCTION_OUTER_THIS'],
    ['class A extends B { go() { zone.cpu.run(() => super.go()) } }', 'FUNCTION_SUPER'],
    ['class A { #a = 1; go(a) { zone.cpu.run((b) => b.#a, a) } }', 'FUNCTION_PRIVATE'],
    ['zone.cpu.run(function () { return this })', undefined],
    ['class A { go() { return zone.node.run(() => this.a) } }', undefined],
    ['class A { go() { return zone.get("x").run(() => this.a) } }', undefined],
    ['class A { go() { return lift(() => this.a) } }', undefined],
  ]
  for (const [body, code] of rows) {
    const build = (): unknown => liftable(`${HEAD}\n\n  ${body}`, '/app/a.js')
    if (code === undefined) build()
    else
      assert.throws(build, (error: Error & { code?: string }) => {
        assert.equal(error.code, code, body)
        assert.match(error.message, /an anonymous function \(\/app\/a\.js:1\d:\d+\)/)
        return true
      })
  }
})

test('text that is not a module, or without Corespun, is left as it is', () => {
  for (const code of [
    '',
    'const a = <b/>; "corespun"',
    '"corespun" +',
    'import { zone } from "other"; zone.run(() => 1)',
  ]) {
    assert.equal(liftable(code, '/a.js'), undefined, code)
  }
})

test('a bundled function with a relative import() is left, one of a package is not', () => {
  const sent = (inner: string): boolean =>
    liftable(`${HEAD}zone.cpu.run(() => import(${inner}))`, '/a.js', true) !== undefined
  const expected = { "'./a.js'": false, name: false, "'node:fs'": true, "'@a/b'": true }
  for (const [inner, isSent] of Object.entries(expected)) assert.equal(sent(inner), isSent, inner)
})

test('a bundled module names emitted files, where it named files of the program', () => {
  const located = new Map(['./a.ts', '../b.mjs', './m.js'].map((each) => [each, JSON.stringify(`@${each}`)]))
  const rows: readonly (readonly [body: string, written: string | undefined])[] = [
    ["zone.go(new URL('./a.ts', import.meta.url))", 'zone.go($corespunUrl("@./a.ts"))'],
    ["const b = new URL('../b.mjs', import.meta.url), c = b", 'const b = $corespunUrl("@../b.mjs"), c = b'],
    ["f(new URL('./a.ts',\n import.meta.url), 1)", 'f($corespunUrl("@./a.ts")\n, 1)'],
    [
      'export function price() {}\nlift(exported(import.meta.url, price))',
      'lift(exported($corespunUrl("@./m.js").href, price, "price"))',
    ],
    [
      'const p = () => {}\nexport { p as price }\nexported(import.meta.url, p)',
      'exported($corespunUrl("@./m.js").href, p, "price")',
    ],
    [
      'export default function p() {}\nexported(import.meta.url, p)',
      'exported($corespunUrl("@./m.js").href, p, "default")',
    ],
    ["exported(import.meta.url, f, 'other')", `exported($corespunUrl("@./m.js").href, f, 'other')`],
    ["new Worker(new URL('./a.ts', import.meta.url))", undefined],
    ["new URL('./a.png', import.meta.url)", undefined],
    ["new URL('pkg/a.js', import.meta.url)", undefined],
    ["new URL('./a.ts', base)", undefined],
    ["const URL = f; new URL('./a.ts', import.meta.url)", undefined],
    ['const exported = f; exported(import.meta.url, f)', undefined],
  ]
  for (const [body, written] of rows) {
    const head = "import { zone, lift } from 'corespun'\n"
    const own = body.includes('const exported') ? '' : "import { exported } from 'corespun/arrow'\n"
    const found = liftable(`${head}${own}${body}\n`, '/m.js', true)
    assert.equal(found === undefined, written === undefined, body)
    const { code = '' } = found?.write({ file: "''", located }) ?? {}
    assert.ok(code.includes(written ?? ''), `${body}\n${code}`)
    assert.equal(liftable(`${head}${own}${body}\n`, '/m.js'), undefined, 'where the files are there')
  }
})

test('what is lifted is not lifted again', () => {
  const { code } = liftable(`${HEAD}zone.cpu.run(() => 1)`, '/a.js')?.write({ file: "''" }) ?? { code: '' }
  assert.ok(code.includes('$corespunUnit0'))
  assert.equal(liftable(code, '/a.js'), undefined)
})

test('the source map leads from each word to the same word', () => {
  const body =
    'const f = () => zone.cpu.map([1], (one) => one + tail([one])); f(); zone.cpu.run(() => 2)\n' +
    "f(new URL('./a.js', import.meta.url), one); f(new URL(\n  './a.js', import.meta.url), two, new " +
    "URL('./a.js', import.meta.url), three)"
  const source = `${HEAD}${body}\nf()\n`
  const located = new Map([['./a.js', '"@"']])
  const { code, map } = liftable(source, '/a.js', true)?.write({ file: "''", located }) ?? assert.fail()
  const reader = new SourceMap({ ...map, file: '', sourceRoot: '' })
  const lines = source.split('\n')
  let words = 0
  for (const [line, text] of code
    .split('\n')
    .slice(0, lines.length - 1)
    .entries()) {
    for (const { index, 0: word } of text.matchAll(/[\w$]+/g)) {
      if (word.startsWith('$corespun')) continue
      const entry = reader.findEntry(line, index) as { originalLine: number; originalColumn: number }
      assert.equal(lines[entry.originalLine]?.slice(entry.originalColumn).startsWith(word), true, word)
      words++
    }
  }
  assert.ok(words > 30, `${words} words`)
})
