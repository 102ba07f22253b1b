/**
 * A schema of zod whose usual case is decided by generated code: does this parsed JSON fit as it is?
 *
 * zod makes an object for each field it looks at, and a copy of the whole; for a body of 1 KiB that costs as
 * much as parsing it. The code makes none: it compares types and keys itself, and asks zod's own checks.
 * It never refuses: where it is not certain that zod would return an equal value, zod decides. Only kinds are
 * covered that return what they receive, and whose checks have no effects: not `refine`, `transform`,
 * `default` or `z.lazy`. `schema._zod` is what zod documents for libraries; nothing of it is needed.
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

type Accepts = (value: unknown) => boolean

/** The same schema, for values that are nobody else's: one that fits as it is is returned itself. */
export function accepting(schema: Schema): Schema {
  const { '~standard': standard } = schema
  const { validate } = standard
  if (!('_zod' in schema)) return { '~standard': standard }
  let accepts: Accepts | undefined
  return {
    '~standard': {
      ...standard,
      validate(value) {
        // When it is first needed, since a schema may refer to one that is declared after the route.
        accepts ??= generated(schema as unknown as Zod)
        return value !== undefined && accepts(value) ? { value } : validate(value)
      },
    },
  }
}

function generated(schema: Zod): Accepts {
  const never: Accepts = () => false
  if (isGeneratingForbidden()) return never
  try {
    return new Code().function(schema)
  } catch {
    return never // of a kind that is not covered, or made by a zod that is different inside
  }
}

/** The statements of one function: they return false for what does not fit. Keys enter it as JSON strings. */
class Code {
  readonly #constants: unknown[] = []
  readonly #open = new Set<Zod>()
  #count = 0

  function(schema: Zod): Accepts {
    const payload: Payload = { value: undefined, issues: [] }
    const body = `return (v) => { ${this.#fits(schema, 'v')} return true }`
    const names = this.#constants.map((_, at) => `c${at}`)
    const accepts = new Function('p', ...names, body)(payload, ...this.#constants) as Accepts
    return (value) => {
      try {
        if (accepts(value)) return true
      } catch {
        // zod decides
      }
      payload.issues = []
      return false
    }
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
  #object({ shape = {}, catchall }: Definition, value: string): string {
    const keys = Object.keys(shape)
    const isOpen = catchall !== undefined && catchall._zod.def.type !== 'never'
    if (isOpen || keys.includes('__proto__') || Object.getOwnPropertySymbols(shape).length > 0)
      throw new Error('not covered')
    const left = this.#name()
    const fields = keys.map((key) => {
      const field = this.#name()
      return (
        `const ${field} = ${value}[${JSON.stringify(key)}]; if (${field} !== undefined) ${left}--; ` +
        this.#fits(shape[key], field)
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
