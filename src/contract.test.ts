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

/** Name and parameters of each method of `Binding`. */
function inBinding(): Record<string, string> {
  const body = /export interface Binding \{([^]*)\n\}/.exec(read('src/native/binding.ts'))![1]
  const methods = body.replace(/^ *\/\*\*[^]*?\*\/$/gm, '').matchAll(/^ {2}(\w+)\(([^]*?)\): [\w| <>[\]]+$/gm)
  const names = (text: string): string =>
    [...text.replace(/\([^)]*\) =>/g, '').matchAll(/(\w+):/g)].map((found) => found[1]).join(', ')
  return Object.fromEntries([...methods].map(([, name, parameters]) => [name, names(parameters)]))
}

/** The same in the first words of each function's text in crates/node, which are as many as it reads. */
function inCore(): Record<string, string> {
  const folder = new URL('crates/node/src/', ROOT)
  const text = readdirSync(folder).map((file) => readFileSync(new URL(file, folder), 'utf8'))
  const functions = [
    ...text.join('\n').matchAll(/^\/\/\/ (?<name>\w+)\((?<names>[\w, ]*)\): [^]*?^\}/gm),
    ...text.join('\n').matchAll(/^function! \{\n {4}\/\/\/ (?<name>\w+)\((?<names>[\w, ]*)\): [^]*?^\}/gm),
    ...text.join('\n').matchAll(/^call!\([^]*?^ {4}"(?<name>\w+)\((?<names>[\w, ]*)\): /gm),
  ]
  return Object.fromEntries(
    functions.map(([body, name, names]) => {
      const read = /Arguments::<(\d+)>|^call!\(\s*\w+,\s*(\d+)/.exec(body)
      const typed = /^function! [^]*?^ {4}\w+\(([^]*?)\s*\)\s*\|/m.exec(body)?.[1]
      const count =
        typed?.split(/,\s+(?=\w+:)/).filter((each) => each !== '').length ?? read?.[1] ?? read?.[2]
      assert.equal(Number(count ?? 0), names === '' ? 0 : names.split(', ').length, `arguments of ${name}`)
      return [name, names]
    }),
  )
}

test('the functions of the core have the names and parameters of Binding', () => {
  const [binding, core] = [inBinding(), inCore()]
  assert.deepEqual(binding, core)
  assert.deepEqual(Object.keys(native).sort(), Object.keys(binding).sort(), 'what the core exports')
})
