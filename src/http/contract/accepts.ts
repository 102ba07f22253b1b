/**
 * A schema of zod whose usual case is decided by generated code: does this parsed JSON fit as it is, and what
 * is made of these strings?
 *
 * zod makes an object for each field it looks at, and a copy of the whole; for a body of 1 KiB that costs as
 * much as parsing it. The code makes none: it compares types and keys itself, and asks zod's own checks.
 * It never refuses: where it is not certain that zod would return an equal value, zod decides. Only kinds are
 * covered that return what they receive, and whose checks have no effects: not `refine`, `transform` or
 * `z.lazy`. Fields of records of strings may have `coerce` and `default`, too. `schema._zod` is what zod
 * documents for libraries; nothing of it is needed.
 */
import { isGeneratingForbidden } from '../../transport/internal.ts'
import type { Schema } from './schema.ts'

/** What zod's checks receive. */
interface Payload {
  value: unknown
  issues: unknown[]
}

/** A schema or a check, as far as it is read here. */
interface Zod {
  readonly _zod: {
    readonly def: Definition
    readonly check?: (payload: Payload) => unknown
    readonly values?: ReadonlySet<unknown>
  }
}

interface Definition {
  readonly type: string
  readonly coerce?: boolean
  readonly shape?: Readonly<Record<string, Zod>>
  readonly catchall?: Zod
  readonly element?: Zod
  readonly innerType?: Zod
  readonly defaultValue?: unknown
  readonly checks?: readonly Zod[]
  /** The kind of a check, and its function if that is the program's own. */
  readonly check?: string
  readonly fn?: unknown
}

/** Checks that depend on the value alone. */
const PURE = [
  'min_length',
  'max_length',
  'length_equals',
  'string_format',
  'less_than',
  'greater_than',
  'number_format',
  'multiple_of',
]

/** Most names in the code of a schema. */
const NAMES_MAX = 2000

/** By type, what a string becomes. */
const COERCED: Readonly<Record<string, string>> = { string: 'String', number: 'Number', boolean: 'Boolean' }

/** Returns whether a value is what zod makes of it, or what zod makes of it. */
type Decides = (value: unknown) => unknown

/** The same schema, for values that are nobody else's: one that fits as it is is returned itself. */
export function accepting(schema: Schema): Schema {
  return decided(schema, (code, zod) => code.fitting(zod))
}

/** The same schema, for records of strings: a part of a request other than its body. */
export function converting(schema: Schema): Schema {
  return decided(schema, (code, zod) => code.converting(zod))
}

function decided(schema: Schema, generate: (code: Code, schema: Zod) => Decides): Schema {
  const { '~standard': standard } = schema // some libraries make it whenever it is read
  const { validate } = standard
  if (!('_zod' in schema)) return { '~standard': standard }
  let decides: Decides | undefined
  return {
    '~standard': {
      ...standard,
      validate(value) {
        // When it is first needed, since a schema may refer to one that is declared after the route.
        decides ??= generated(schema as unknown as Zod, generate)
        const made = value !== undefined && decides(value)
        return made === false ? validate(value) : { value: made === true ? value : made }
      },
    },
  }
}

function generated(schema: Zod, generate: (code: Code, schema: Zod) => Decides): Decides {
  const never: Decides = () => false
  if (isGeneratingForbidden()) return never
  try {
    return generate(new Code(), schema)
  } catch {
    return never // of a kind that is not covered, or made by a zod that is different inside
  }
}

/** The statements of one function: they return false for what does not fit. Keys enter it as JSON strings. */
class Code {
  readonly #constants: unknown[] = []
  readonly #open = new Set<Zod>()
  #count = 0

  fitting(schema: Zod): Decides {
    return this.#function(`${this.#fits(schema, 'v')} return true`)
  }

  /** Another object, with the keys of the shape; others are dropped. */
  converting(schema: Zod): Decides {
    const { def } = schema._zod
    if (def.type !== 'object' || def.catchall !== undefined || isChecked(schema))
      throw new Error('not covered')
    const fields = keysOf(def).map((key) => [JSON.stringify(key), def.shape![key], this.#name()] as const)
    const read = fields.map(
      ([key, field, name]) => `let ${name} = v[${key}]; ${this.#converted(field, name)}`,
    )
    // Those of defaults come last, since a function of the program may make them.
    const set = fields.map(
      ([key, { _zod }, name]) =>
        (_zod.def.type === 'default'
          ? `if (${name} === undefined) ${name} = ${this.#constant(_zod.def)}.defaultValue; `
          : '') + `if (${name} !== undefined) o[${key}] = ${name};`,
    )
    return this.#function(`${read.join(' ')} const o = {}; ${set.join(' ')} return o`)
  }

  #function(statements: string): Decides {
    const payload: Payload = { value: undefined, issues: [] }
    const names = this.#constants.map((_, at) => `c${at}`)
    const body = `return (v) => { ${statements} }`
    const decides = new Function('p', ...names, body)(payload, ...this.#constants) as Decides
    return (value) => {
      try {
        const made = decides(value)
        if (made !== false) return made
      } catch {
        // zod decides
      }
      payload.issues = []
      return false
    }
  }

  /** Of a field that may be absent, or is a string that becomes a number. */
  #converted(schema: Zod, value: string): string {
    const { def, values } = schema._zod
    if (isWrapped(def)) {
      if (isWrapped(def.innerType!._zod.def) || isChecked(schema)) throw new Error('not covered')
      return `if (${value} !== undefined) { ${this.#converted(def.innerType!, value)} }`
    }
    if (def.coerce !== true) return this.#fits(schema, value)
    const coerced = COERCED[def.type]
    if (coerced === undefined) throw new Error('not covered')
    const type = this.#type(def, values, value)
    const own = `${value} = ${coerced}(${value}); ${type}${this.#checks(schema, value)}`
    return `if (${value} === undefined) return false; ${own}`
  }

  #fits(schema: Zod, value: string): string {
    const { def, values } = schema._zod
    if (this.#open.has(schema) || def.coerce === true) throw new Error('not covered')
    this.#open.add(schema)
    const code = this.#type(def, values, value) + this.#checks(schema, value)
    this.#open.delete(schema)
    return code
  }

  #type(def: Definition, values: ReadonlySet<unknown> | undefined, value: string): string {
    switch (def.type) {
      case 'string':
      case 'boolean':
        return `if (typeof ${value} !== '${def.type}') return false;`
      case 'number':
        return `if (!Number.isFinite(${value})) return false;`
      case 'null':
        return `if (${value} !== null) return false;`
      case 'enum':
      case 'literal':
        if (values === undefined || values.has(undefined)) break
        return `if (!${this.#constant(values)}.has(${value})) return false;`
      case 'optional':
        return `if (${value} !== undefined) { ${this.#fits(def.innerType!, value)} }`
      case 'nullable':
        return `if (${value} !== null) { ${this.#fits(def.innerType!, value)} }`
      case 'array': {
        const item = this.#name()
        return (
          `if (!Array.isArray(${value})) return false; for (let i${item} = 0; i${item} < ${value}.length; ` +
          `i${item}++) { const ${item} = ${value}[i${item}]; ${this.#fits(def.element!, item)} }`
        )
      }
      case 'object':
        return this.#object(def, value)
    }
    throw new Error('not covered')
  }

  /** zod drops keys that the shape has not, or refuses them: one with as many keys does not have them. */
  #object(def: Definition, value: string): string {
    const { shape, catchall } = def
    if (catchall !== undefined && catchall._zod.def.type !== 'never') throw new Error('not covered')
    const left = this.#name()
    const fields = keysOf(def).map((key) => {
      const field = this.#name()
      return (
        `const ${field} = ${value}[${JSON.stringify(key)}]; if (${field} !== undefined) ${left}--; ` +
        this.#fits(shape![key], field)
      )
    })
    return (
      `if (typeof ${value} !== 'object' || ${value} === null || Array.isArray(${value})) return false; ` +
      `let ${left} = 0; for (const key in ${value}) ${left}++; ` +
      `${fields.join(' ')} if (${left} !== 0) return false;`
    )
  }

  #checks(schema: Zod, value: string): string {
    const { def, check } = schema._zod
    // A schema such as z.email() is its own first check.
    const all = [...(check === undefined ? [] : [schema]), ...(def.checks ?? [])]
    const calls = all.map(({ _zod: { def, check } }) => {
      if (!PURE.includes(def.check!) || def.fn !== undefined) throw new Error('not covered')
      return `${this.#constant(check)}(p);`
    })
    if (calls.length === 0) return ''
    return (
      `p.value = ${value}; ${calls.join(' ')} ` +
      `if (p.issues.length !== 0 || p.value !== ${value}) return false;`
    )
  }

  #constant(value: unknown): string {
    return `c${this.#constants.push(value) - 1}`
  }

  #name(): string {
    this.#count += 1
    // A schema that is used twice is written twice, so one that doubles at each level is soon too long.
    if (this.#count > NAMES_MAX) throw new Error('not covered')
    return `v${this.#count}`
  }
}

function keysOf({ shape = {} }: Definition): string[] {
  const keys = Object.keys(shape)
  if (keys.includes('__proto__') || Object.getOwnPropertySymbols(shape).length > 0)
    throw new Error('not covered')
  return keys
}

function isWrapped({ type }: Definition): boolean {
  return type === 'optional' || type === 'default'
}

function isChecked({ _zod: { def, check } }: Zod): boolean {
  return check !== undefined || (def.checks ?? []).length > 0
}
