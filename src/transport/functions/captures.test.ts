/**
 * The free names of function texts, written out by hand beside each: the parser's part of the work alone,
 * without the engine's scopes.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readFunctionText } from './captures.ts'

/** Each text with its free names in order of first use. */
const FREE: readonly (readonly [text: string, names: string])[] = [
  ['() => 1', ''],
  ['a => a', ''],
  ['(a, b) => a + b + c', 'c'],
  ['function () { return x }', 'x'],
  ['function self(n) { return n ? self(n - 1) : 0 }', ''],
  ['async () => { await wait() }', 'wait'],
  ['function* () { yield* other }', 'other'],
  ['async function* () { for await (const x of source) yield x }', 'source'],
  ['({ a, b: { c = d }, ...e }) => a + c + e + b', 'd b'],
  ['([a, , [b]] = start) => a + b', 'start'],
  ['(a = b, b) => a', ''],
  ['() => { var x = 1; return x + y }', 'y'],
  ['() => { if (1) { var deep = 1 } return deep }', ''],
  ['() => { { let block = 1 } return block }', 'block'],
  ['() => { { function inner() {} } return 1 }', ''],
  ['() => { return later(); function later() {} }', ''],
  ['() => { for (let i = 0; i < n; i++) i; return i }', 'n i'],
  ['() => { for (const k in o) k }', 'o'],
  ['() => { for (x of list) {} }', 'x list'],
  ['() => { try { a() } catch (e) { e } finally { b() } }', 'a b'],
  ['() => { try {} catch ({ code }) { code } }', ''],
  ['() => { switch (v) { case w: let z = 1; default: z } }', 'v w'],
  ['() => { loop: for (;;) { break loop } }', ''],
  ['() => o.p.q', 'o'],
  ['() => o[p]', 'o p'],
  ['() => o?.p?.[q]', 'o q'],
  ['() => ({ a, b: c, [d]: e, f() { return g } })', 'a c d e g'],
  ['() => ({ a: x } = y)', 'x y'],
  ['() => class A extends B { [k] = v; static { w } m() { return A } }', 'B k v w'],
  ['() => { class A {} return new A() }', ''],
  ['() => { const f = function g() { return g }; return g }', 'g'],
  ['() => `${a}${`${b}`}`', 'a b'],
  ['() => tag`x`', 'tag'],
  ['() => typeof missing', 'missing'],
  ['() => { x = 1; delete y.z; w++ }', 'x y w'],
  ['() => import("x" + y)', 'y'],
  ['() => import.meta.url', ''],
  ['() => new Klass(...rest)', 'Klass rest'],
  ['function () { return arguments.length }', ''],
  ['() => undefined ?? NaN', 'undefined NaN'],
  ['() => /x/g.test(s)', 's'],
  ['() => a ||= b', 'a b'],
  ['() => (x => y => x + y + z)', 'z'],
  ['() => { const { a: { b = c } } = d; return b + a }', 'c d a'],
  ['m(a) { return a + b }', 'b'],
  ['async m() { await b }', 'b'],
  ['*m() { yield b }', 'b'],
  ['get m() { return b }', 'b'],
  ['set m(v) { b = v }', 'b'],
  ['[key + 1](a) { return a }', ''],
  ['#m(a) { return a + b }', 'b'],
  ['"a name"() { return b }', 'b'],
  ['12() { return b }', 'b'],
  ['async(a) { return b }', 'b'],
  ['get(a) { return b }', 'b'],
  ['function () { let a; { a; var b } return b + c }', 'c'],
  ['(a, b = () => a + c) => b', 'c'],
  ['() => { "use strict"; return eval(code) }', 'eval code'],
  ['() => { using a = open(); return a }', 'open'],
]

test('the names a function takes from outside', () => {
  for (const [text, names] of FREE) {
    const found = readFunctionText(text)
      .free.map((each) => each.name)
      .join(' ')
    assert.equal(found, names, text)
  }
})

test('each name is reported at its first use', () => {
  const text = '(a) => {\n  return a + later + later\n}'
  const later = { name: 'later', offset: text.indexOf('later'), isAssigned: false, isProbed: false }
  assert.deepEqual(readFunctionText(text).free, [later])
})

/** Names that each text assigns, and those that it only reads. */
const ASSIGNED: readonly (readonly [text: string, assigned: string, read: string])[] = [
  ['(a) => { total += a * rate }', 'total', 'rate'],
  ['() => count++', 'count', ''],
  ['() => --count.of', '', 'count'],
  ['() => { [a, { b, c: d = e }, ...f] = g }', 'a b d f', 'e g'],
  ['() => { let a; a = b; ({ a, c } = b) }', 'c', 'b'],
  ['() => { for (a of b) c }', 'a', 'b c'],
  ['() => { for (const a in b) a = 1 }', '', 'b'],
]

test('the names a function assigns, and those it only reads', () => {
  for (const [text, assigned, read] of ASSIGNED) {
    const { free } = readFunctionText(text)
    const namesOf = (isAssigned: boolean): string =>
      free
        .filter((each) => each.isAssigned === isAssigned)
        .map(({ name }) => name)
        .join(' ')
    assert.deepEqual([namesOf(true), namesOf(false)], [assigned, read], text)
  }
})

/** What binds a text to its location: a keyword around an arrow, super, #names. */
const TIED: readonly (readonly [text: string, tie: string])[] = [
  ['() => this', 'this'],
  ['() => () => this', 'this'],
  ['() => function () { return this }', ''],
  ['() => arguments', 'arguments'],
  ['() => new.target', 'new.target'],
  ['function () { return new.target }', ''],
  ['function () { return () => this }', ''],
  ['() => class { f = this }', ''],
  ['() => class { [this.k] = 1 }', 'this'],
  ['() => class extends this.Base {}', 'this'],
  ['() => ({ m() { return this } })', ''],
  ['m() { return super.m() }', 'super'],
  ['m() { return () => super.m }', 'super'],
  ['m() { return this.#p }', '#p'],
  ['m(o) { return #p in o }', '#p'],
  ['() => class { #p = 1; m() { return this.#p } }', ''],
  ['() => class extends Object { m() { return super.m } constructor() { super() } }', ''],
  ['() => ({ m() { return super.m } })', ''],
]

test('what ties a function to the object or class around it', () => {
  for (const [text, tie] of TIED) {
    const found = readFunctionText(text)
    assert.equal(
      [found.outerKeyword, found.usesSuper ? 'super' : '', ...found.privateNames].join(''),
      tie,
      text,
    )
  }
})

test('the text to compile is the original, line for line', () => {
  const texts = [
    ['() => import.meta.url', '() => $importMeta.url'],
    ['() => [import.meta, import\n.meta]', '() => [$importMeta, $importMeta\n]'],
    ['() => [$importMeta, import.meta]', '() => [$importMeta, $$importmet]'],
    ['[a + b](c) { }', '_m     (c) { }'],
    ['async () => (await import("a")).b', 'async () => (await $imprt("a")).b'],
    ['(f) => [import("a"), import(f), import("b", f)]', '(f) => [$imprt("a"), import(f), import("b", f)]'],
    ['() => [() => import("a"), import("b")]', '() => [() => import("a"), $imprt("b")]'],
    ['() => import\n("a", import.meta)', '() => import\n("a", $importMeta)'],
    ['() => [import.meta, $imprt, import("a")]', '() => [$importMeta, $imprt, _imprt("a")]'],
    [
      '() => $imprt + _imprt + $mport + _mport + import("a")',
      '() => $imprt + _imprt + $mport + _mport + import("a")',
    ],
    ['async [k]() { await import("a") }', 'async _m () { await $imprt("a") }'],
    ['async *[a\n](c) { }', 'async *_m\n(c) { }'],
    ['#p(c) { }', '_m(c) { }'],
    ['get [a](){}', 'get _m (){}'],
  ]
  for (const [text, code] of texts) assert.equal(readFunctionText(text).code, code)
})

test('the engine locates arrows at their start and all others at their parameters', () => {
  const texts = [
    '|a => 1',
    '|async (a) => 1',
    'function |(a) {}',
    'async function* name |(a) {}',
    'm|() {}',
    'get x|() {}',
    '[k(1)]|() {}',
    'static_|(){}',
    '"(" |() {}',
  ]
  for (const marked of texts) {
    assert.equal(readFunctionText(marked.replace('|', '')).located, marked.indexOf('|'), marked)
  }
})

test('a text beyond the parser is a SyntaxError', () => {
  assert.throws(() => readFunctionText('function ( {'), SyntaxError)
  assert.throws(() => readFunctionText('m() {} n() {}} , {'), SyntaxError)
})
