/**
 * The contract between JavaScript and the native core: the numbers that both sides use and the functions that
 * one exports and the other calls are the same, none is missing on either side.
 *
 * The Rust sources are the one source. A number's name is compared without its form: `request::LENGTH_LOW`,
 * `Request.lengthLow` and `REQUEST_LENGTH_LOW` are one name.
 */
import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { test } from 'node:test'
import * as stores from './bridge/layout.ts'
import { TYPES } from './http/core/core.ts'
import * as http from './http/core/native/layout.ts'
import { native } from './native/index.ts'
import * as calls from './native/layout.ts'

const ROOT = new URL('../', import.meta.url)
const read = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8')

type Numbers = Record<string, unknown>

/** lengthLow, LengthLow and LENGTH_LOW as LENGTH_LOW. */
const upper = (name: string): string =>
  /[a-z]/.test(name) ? name.replace(/(?<=[a-z0-9])[A-Z]/g, '_$&').toUpperCase() : name

/** What a Rust file of constants, modules of constants and enums defines; it must contain nothing else. */
function inRust(path: string): Numbers {
  const numbers: Numbers = {}
  let prefix = ''
  const text = read(path).replace(/^\s*(\/\/.*|#\[.*\])$/gm, '')
  const forms = [
    /pub (?:mod|enum) (?<open>\w+) \{/,
    /(?<close>\})/,
    /pub const (?<name>\w+): [^=]+ = (?<value>(?:[^;"]|"[^"]*")+);/,
    /(?<variant>\w+) = (?<number>\d+),/,
  ]
  const item = new RegExp(`\\s*(?:${forms.map((form) => form.source).join('|')})\\s*`, 'y')
  while (item.lastIndex < text.length) {
    const at = item.lastIndex
    const found = item.exec(text)?.groups
    assert.ok(found !== undefined, `${path} has something that is no number: ${text.slice(at, at + 60)}`)
    if (found['open'] !== undefined) prefix = `${upper(found['open'])}_`
    else if (found['close'] !== undefined) prefix = ''
    else {
      const value = JSON.parse(
        (found['value'] ?? found['number'])
          .replace(/0x[\da-f_]+/g, (digits) => String(Number(digits.replaceAll('_', ''))))
          .replace(/^(\d+) \* (\d+)$/, (_, one, other) => String(Number(one) * Number(other)))
          .replace(/,\s*\]$/, ']'),
      ) as unknown
      numbers[prefix + upper(found['name'] ?? found['variant'])] = plain(value)
    }
  }
  return numbers
}

/** What the modules export. */
function inTypeScript(...modules: object[]): Numbers {
  const numbers: Numbers = {}
  for (const [name, value] of modules.flatMap((module) => Object.entries(module))) {
    if (typeof value !== 'object' || Array.isArray(value)) numbers[upper(name)] = plain(value)
    else
      for (const [part, number] of Object.entries(value))
        numbers[`${upper(name)}_${upper(part)}`] = plain(number)
  }
  return numbers
}

/** All ones is -1 where the words are signed. */
const plain = (value: unknown): unknown => (typeof value === 'number' ? value | 0 : value)

function same(path: string, ...modules: object[]): void {
  assert.deepEqual(inTypeScript(...modules), inRust(path))
}

test('calls to zones have the numbers of crates/bridge/src/layout.rs', () => {
  same('crates/bridge/src/layout.rs', calls)
})

test('stores and locks have the numbers of crates/store/src/layout.rs', () => {
  same('crates/store/src/layout.rs', stores)
})

test('servers have the numbers of crates/http/src/layout.rs', () => {
  same('crates/http/src/layout.rs', http, { TYPES })
})

/** Name and type of each parameter between the parentheses of a function. */
const parameters = (text: string): string[][] =>
  [...text.matchAll(/(\w+): ([^]+?)(?=,\s+\w+: |,?\s*$)/g)].map(([, name, type]) => [name, type])

const camel = (name: string): string => name.replace(/_(\w)/g, (_, first: string) => first.toUpperCase())

/** Name and typed parameters of each method of `Binding`. */
function inBinding(): Record<string, string> {
  const body = /export interface Binding \{([^]*)\n\}/.exec(read('src/native/binding.ts'))![1]
  const methods = body.replace(/^ *\/\*\*[^]*?\*\/$/gm, '').matchAll(/^ {2}(\w+)\(([^]*?)\): [\w| <>[\]]+$/gm)
  return Object.fromEntries(
    [...methods].map(([, name, text]) => [
      name,
      parameters(text)
        .map((each) => each.join(': '))
        .join(', '),
    ]),
  )
}

/** What JavaScript passes for a parameter of each type. Other parameters are not arguments of JavaScript. */
const PASSED: Record<string, string> = {
  u32: 'number',
  u64: 'number',
  f64: 'number',
  bool: 'boolean',
  Text: 'string',
  'Box<[u16]>': 'string',
  String: 'string',
  '&[u8]': 'Uint8Array',
  '&mut [u8]': 'Uint8Array',
  'Vec<u32>': 'Uint8Array',
  'Vec<f64>': 'Uint8Array',
  Scratch: 'Uint8Array',
  Kept: 'Uint8Array',
  ArrayBuffer: 'ArrayBuffer',
  Pointer: 'number',
}
/** Values of classes that the core does not distinguish. */
const VALUES: Record<string, string> = {
  bufferShare: 'SharedArrayBuffer',
  functionKnown: 'Function',
  functionRemember: 'Function',
  functionOrigin: 'Function',
  open: '() => void',
  httpOpen: '() => void',
}

/** The same of each function that crates/node exports. */
function inCore(): Record<string, string> {
  const folder = new URL('crates/node/src/', ROOT)
  const text = readdirSync(folder)
    .map((file) => readFileSync(new URL(file, folder), 'utf8').replace(/\/\/.*$/gm, ''))
    .join('\n')
  const defined = new Map(
    [...text.matchAll(/^(?:const )?fn (\w+)\(([^]*?)\)(?: -> [^{]+)? \{$/gm)].map((found) => [
      found[1],
      found[2],
    ]),
  )
  const typed = [...text.matchAll(/\bexports! \{([\w,\s]*)\}/g)].flatMap((found) => found[1].match(/\w+/g)!)
  const hot = [...text.matchAll(/const HOT: [^]*?\];/g)].flatMap((found) =>
    [...found[0].matchAll(/^ {4}(?:\("(\w+)"|(\w+):)/gm)].map(([, one, other]) => one ?? other),
  )
  const entries = typed.map((name) => {
    const passed = parameters(defined.get(name) ?? assert.fail(`${name} is not defined`)).flatMap(
      ([given, type]) => {
        const kind = type === 'Value' ? VALUES[camel(name)] : PASSED[type]
        return kind === undefined ? [] : `${camel(given)}: ${kind}`
      },
    )
    return [camel(name), passed.join(', ')]
  })
  return Object.fromEntries([...entries, ...hot.map((name) => [camel(name), ''])])
}

test('the functions of the core have the names and parameters of Binding', () => {
  const [binding, core] = [inBinding(), inCore()]
  // The one hot function with an argument, which it reads itself.
  assert.deepEqual(binding, { ...core, submitFunction: 'value: Function' })
  assert.deepEqual(Object.keys(native).sort(), Object.keys(binding).sort(), 'what the core exports')
})
