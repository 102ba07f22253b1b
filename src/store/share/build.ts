/**
 * Writes a value into shared memory, column by column.
 *
 * Each part of the value is read once. The columns are collected first, because their sizes are known only
 * when all rows have been seen; then they are copied into memory of exactly their size.
 */
import { StoreError } from '../errors.ts'
import { isPolluted } from '../freeze.ts'
import { ABSENT, accessOf, DEPTH_MAX, type PartKind, kindOf, refusalOf, refused, UNUSED } from './kinds.ts'
import {
  Header,
  HEADER_BYTES,
  MAGIC,
  Missing,
  type Numbers,
  type NumbersName,
  type Plan,
  type StringsPlan,
  type WholePlan,
} from './layout.ts'
import { Texts } from './texts.ts'

/** Most fields of the records in one list: each is a column. */
const FIELDS_MAX = 1024
/** From this level on a value is suspected to contain itself. */
const SUSPECT_DEPTH = 8
const timeOf = Date.prototype.getTime

type Row = Record<string, unknown>

/**
 * The memory of a value.
 * @throws {StoreError} `STORE_NOT_SHAREABLE`, `STORE_SHARE_TOO_LARGE`.
 */
export function build(value: unknown, bytesMax: number): SharedArrayBuffer {
  const builder = new Builder(value, bytesMax)
  const root = builder.column([value], 0, 'value')
  return builder.finish({ strings: builder.strings(), root })
}

class Builder {
  readonly #value: unknown
  readonly #bytesMax: number
  readonly #columns: { readonly at: number; readonly numbers: Numbers }[] = []
  readonly #texts = new Texts()
  #end = HEADER_BYTES
  #isChecked = false

  constructor(value: unknown, bytesMax: number) {
    this.#value = value
    this.#bytesMax = bytesMax
  }

  /**
   * Writes values, an array that belongs to the builder, as the rows of a column.
   * @param path Where they are in the value.
   */
  column(values: unknown[], depth: number, path: string): Plan {
    if (depth >= SUSPECT_DEPTH) this.#checkDepth(depth)
    const kinds = new Set<PartKind>()
    let missing: Uint8Array | undefined
    let last: PartKind | undefined
    for (let row = 0; row < values.length; row++) {
      let kind = kindOf(values[row])
      if (kind === 'view') {
        values[row] = (values[row] as { toJSON(): unknown }).toJSON()
        kind = kindOf(values[row])
      }
      if (kind === undefined) throw this.#refusal()
      const code = kind === last ? 0 : codeOf(kind)
      if (code !== 0) {
        missing ??= new Uint8Array(values.length)
        missing[row] = code
        values[row] = UNUSED
      } else if (kind !== last && kind !== 'unused') {
        kinds.add(kind)
        last = kind
      }
    }
    const at = missing === undefined ? 0 : this.#put(missing)
    if (kinds.size > 1) return this.#union(values, [...kinds], at, depth, path)
    return this.#rows(last, values, at, depth, path)
  }

  /** Writes the strings that columns refer to. */
  strings(): StringsPlan {
    const { starts, wide, text } = this.#texts.written((bytes) => this.#check(bytes))
    return {
      count: this.#texts.count,
      starts: this.#put(starts),
      wide: this.#put(wide),
      text: this.#put(text),
      textBytes: text.length,
    }
  }

  finish(plan: WholePlan): SharedArrayBuffer {
    const text = new TextEncoder().encode(JSON.stringify(plan))
    const planAt = this.#put(text)
    let memory: SharedArrayBuffer
    try {
      memory = new SharedArrayBuffer(this.#end)
    } catch {
      // The system has less memory than the limit allows.
      throw this.#tooLarge()
    }
    const header = new Uint32Array(memory, 0, Header.words)
    header[Header.magic] = MAGIC
    // Columns are aligned to eight bytes, so a word is enough for 32 GiB.
    header[Header.planAt] = planAt / 8
    header[Header.planBytes] = text.length
    const bytes = new Uint8Array(memory)
    for (const { at, numbers } of this.#columns)
      bytes.set(new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength), at)
    return memory
  }

  #rows(
    kind: PartKind | undefined,
    values: readonly unknown[],
    missing: number,
    depth: number,
    path: string,
  ): Plan {
    switch (kind) {
      case undefined:
        return { kind: 'nothing', at: 0, missing }
      case 'number':
        return { kind, missing, ...this.#numbers(values) }
      case 'bigint': {
        const rows = BigInt64Array.from(values, (value) => (value === UNUSED ? 0n : (value as bigint)))
        return { kind: 'number', type: 'BigInt64Array', missing, at: this.#put(rows) }
      }
      case 'boolean': {
        const rows = new Uint8Array(values.length)
        for (let row = 0; row < rows.length; row++) if (values[row] === true) rows[row] = 1
        return { kind, missing, at: this.#put(rows) }
      }
      case 'string':
        return { kind, missing, at: this.#put(this.#numbersOfTexts(values)) }
      case 'date': {
        const times = new Float64Array(values.length)
        for (let row = 0; row < times.length; row++) {
          const value = values[row]
          if (value !== UNUSED) times[row] = timeOf.call(value as Date)
        }
        return { kind, missing, at: this.#put(times) }
      }
      case 'record':
        return this.#records(values, missing, depth, path)
      case 'list':
        return this.#lists(values as readonly unknown[][], missing, depth, path)
      default:
        return this.#typedArrays(kind as NumbersName, values, missing)
    }
  }

  #numbers(values: readonly unknown[]): { readonly type: NumbersName; readonly at: number } {
    const integers = new Int32Array(values.length)
    for (let row = 0; row < values.length; row++) {
      const value = values[row]
      if (value === UNUSED) continue
      integers[row] = value as number
      if (!Object.is(integers[row], value)) return { type: 'Float64Array', at: this.#put(doubles(values)) }
    }
    return { type: 'Int32Array', at: this.#put(integers) }
  }

  #numbersOfTexts(values: readonly unknown[]): Uint32Array {
    const rows = new Uint32Array(values.length)
    this.#texts.number(values, rows, (characters) => this.#check(characters))
    return rows
  }

  #records(values: readonly unknown[], missing: number, depth: number, path: string): Plan {
    const { keys, isUniform } = keysOf(values)
    if (keys.length > FIELDS_MAX) throw this.#tooManyFields(path)
    const of = keys.map((key) => {
      const column = new Array<unknown>(values.length)
      for (let row = 0; row < values.length; row++) {
        const record = values[row]
        if (record === UNUSED) column[row] = UNUSED
        else column[row] = isUniform || Object.hasOwn(record as Row, key) ? (record as Row)[key] : ABSENT
      }
      return this.column(column, depth + 1, path + accessOf(key))
    })
    return { kind: 'record', at: 0, missing, keys, of }
  }

  #lists(values: readonly unknown[][], missing: number, depth: number, path: string): Plan {
    const starts = new Uint32Array(values.length + 1)
    let rows = 0
    for (let row = 0; row < values.length; row++) {
      starts[row] = rows
      if ((values[row] as unknown) !== UNUSED) rows += values[row].length
      // Before anything is allocated for them: a list that contains itself grows at each level.
      this.#check(rows * 4)
    }
    starts[values.length] = rows
    // A longer one would be a dictionary; it grows by the elements behind these.
    const elements = new Array<unknown>(Math.min(rows, 2 ** 25))
    for (let row = 0; row < values.length; row++) {
      const [start, count] = [starts[row], starts[row + 1] - starts[row]]
      for (let index = 0; index < count; index++) elements[start + index] = values[row][index]
    }
    const at = this.#put(starts)
    const of = this.column(elements, depth + 1, `${path}[]`)
    return { kind: 'list', at, missing, of, rows, isTyped: false }
  }

  #typedArrays(type: NumbersName, values: readonly unknown[], missing: number): Plan {
    const starts = new Uint32Array(values.length + 1)
    const arrays = values as readonly Numbers[]
    let rows = 0
    for (let row = 0; row < values.length; row++) {
      starts[row] = rows
      if (values[row] !== UNUSED) rows += arrays[row].length
    }
    starts[values.length] = rows
    const width = arrays.find((array) => (array as unknown) !== UNUSED)?.BYTES_PER_ELEMENT ?? 1
    this.#check(rows * width)
    const bytes = new Uint8Array(rows * width)
    for (let row = 0; row < values.length; row++) {
      if (values[row] === UNUSED) continue
      const { buffer, byteOffset } = arrays[row]
      const length = (starts[row + 1] - starts[row]) * width
      bytes.set(new Uint8Array(buffer, byteOffset, length), starts[row] * width)
    }
    const at = this.#put(starts)
    const of: Plan = { kind: 'number', type, missing: 0, at: this.#put(bytes) }
    return { kind: 'list', at, missing, of, rows, isTyped: true }
  }

  /** Values of several kinds: those of each kind are a column of their own. */
  #union(
    values: readonly unknown[],
    kinds: readonly PartKind[],
    missing: number,
    depth: number,
    path: string,
  ): Plan {
    const tags = new Uint8Array(values.length)
    const slots = new Uint32Array(values.length)
    const parts = kinds.map((): unknown[] => [])
    for (let row = 0; row < values.length; row++) {
      if (values[row] === UNUSED) continue
      const tag = kinds.indexOf(kindOf(values[row]) as PartKind)
      tags[row] = tag
      slots[row] = parts[tag].push(values[row]) - 1
    }
    const [at, slotsAt] = [this.#put(tags), this.#put(slots)]
    const of = kinds.map((kind, tag) => this.#rows(kind, parts[tag], 0, depth, path))
    return { kind: 'union', at, missing, slots: slotsAt, of, rows: parts.map((part) => part.length) }
  }

  #put(numbers: Numbers): number {
    const at = this.#end
    this.#columns.push({ at, numbers })
    this.#end = at + Math.ceil(numbers.byteLength / 8) * 8
    this.#check(0)
    return at
  }

  #check(bytesMore: number): void {
    if (this.#end + bytesMore > this.#bytesMax) throw refusalOf(this.#value) ?? this.#tooLarge()
  }

  #checkDepth(depth: number): void {
    if (this.#isChecked && depth <= DEPTH_MAX) return
    this.#isChecked = true
    const refusal = refusalOf(this.#value)
    if (refusal !== undefined) throw refusal
  }

  #refusal(): StoreError {
    // A getter that returns something else when it is read again.
    return refusalOf(this.#value) ?? refused('value', 'a value that changes while it is read')
  }

  #tooLarge(): StoreError {
    return new StoreError('STORE_SHARE_TOO_LARGE', { bytesMax: this.#bytesMax })
  }

  #tooManyFields(path: string): StoreError {
    const what = `records with more than ${FIELDS_MAX} different fields (share a list of { key, value })`
    return refusalOf(this.#value) ?? refused(path, what)
  }
}

function codeOf(kind: PartKind): number {
  if (kind === 'null') return Missing.null
  if (kind === 'undefined') return Missing.undefined
  return kind === 'absent' ? Missing.absent : Missing.value
}

function doubles(values: readonly unknown[]): Float64Array {
  // A loop: `from` with a function takes five times as long.
  const rows = new Float64Array(values.length)
  for (let row = 0; row < rows.length; row++) if (values[row] !== UNUSED) rows[row] = values[row] as number
  return rows
}

/** The fields of all records, and whether each record has all of them. */
function keysOf(records: readonly unknown[]): { readonly keys: string[]; readonly isUniform: boolean } {
  const keys: string[] = []
  const known = new Set<string>()
  let isUniform = !isPolluted()
  let isFirst = true
  for (const record of records) {
    if (record === UNUSED) continue
    let at = 0
    for (const key in record as Row) {
      if (keys[at] === key) {
        at++
      } else if (Object.hasOwn(record as Row, key)) {
        if (!known.has(key)) keys.push(key)
        known.add(key)
        if (isFirst) at++
        else isUniform = false
      }
    }
    if (at !== keys.length) isUniform = false
    isFirst = false
  }
  return { keys, isUniform }
}
