/**
 * What a thread sees of a shared value: records and lists that read their fields in place.
 *
 * A view is a table of columns and a position in them. Its fields are getters of its prototype, which
 * generate.ts makes for each layout. Views are made when they are looked at and not kept, so a list takes no
 * memory per record; two looks at a record are two views. Their fields are symbols and not private, because
 * V8 of Node 26 initialises private fields by a call (30 ns). Writing throws as writing to a frozen object
 * does: fields have no setters, and the last prototype is a Proxy that refuses new ones, which costs the
 * fields nothing. All prototypes are frozen; freezing each view would take 50 ns.
 */
import { Missing, type Numbers } from './layout.ts'

/** `inspect` of node:util, which is passed to what it calls. */
type Inspect = (value: unknown, options: object) => string

/** The table of a view. */
export const TABLE = Symbol('table')
/** The row of a view, or the first row of a list. */
export const AT = Symbol('at')
/** The row after the last one of a list. */
export const END = Symbol('end')

/** Elements of a list that `console.log` shows. */
const SHOWN_MAX = 100

/** A field of a record view that is a value of its own. */
export interface Field {
  readonly key: string
  /** The bytes of {@link Missing} of its column. */
  readonly missing: Uint8Array | undefined
}

/** What all views of one part of a shared value have in common. */
export interface Part {
  /** The shared value. */
  readonly whole: { readonly id: number; readonly memory: SharedArrayBuffer }
  readonly number: number
  /** Rows of its column. */
  readonly rows: number
  /** Fields of records. */
  readonly fields: readonly Field[]
  /** The elements of what was a typed array. */
  readonly numbers: Numbers | undefined
  /** A view of one row, or of those of a list. */
  readonly view: (at: number, end: number) => SharedView
}

/** The columns of a part; generated classes extend it by them. */
export interface Table {
  readonly part: Part
}

/** A part of a shared value: a record or a list. */
export class SharedView {
  declare readonly [TABLE]: Table
  declare readonly [AT]: number
}

/** A record; its fields are getters of the generated prototype. */
export class SharedRecord extends SharedView {
  /** Returns a plain copy. */
  toJSON(): Record<string, unknown> {
    return copyOfRecord(this)
  }

  [Symbol.for('nodejs.util.inspect.custom')](): unknown {
    return copyOfRecord(this)
  }
}

/** What lists have beside the methods of arrays. */
export interface ListMembers<T> {
  /** Returns a plain copy, an array or a typed array. */
  toJSON(): T[]
}

/** A list; `at` and the iterator are generated. */
export abstract class SharedList extends SharedView {
  declare readonly [END]: number

  abstract at(index: number): unknown
  abstract [Symbol.iterator](): IterableIterator<unknown>

  get length(): number {
    return this[END] - this[AT]
  }

  get [Symbol.isConcatSpreadable](): boolean {
    return true
  }

  forEach(fn: Callback<void>, self?: unknown): void {
    const { length } = this
    for (let index = 0; index < length; index++) fn.call(self, this.at(index), index, this)
  }

  map<Result>(fn: Callback<Result>, self?: unknown): Result[] {
    const results: Result[] = []
    const { length } = this
    for (let index = 0; index < length; index++) results.push(fn.call(self, this.at(index), index, this))
    return results
  }

  filter(fn: Callback<unknown>, self?: unknown): unknown[] {
    const found: unknown[] = []
    const { length } = this
    for (let index = 0; index < length; index++) {
      const element = this.at(index)
      if (fn.call(self, element, index, this)) found.push(element)
    }
    return found
  }

  find(fn: Callback<unknown>, self?: unknown): unknown {
    const index = this.findIndex(fn, self)
    return index < 0 ? undefined : this.at(index)
  }

  findIndex(fn: Callback<unknown>, self?: unknown): number {
    const { length } = this
    for (let index = 0; index < length; index++) {
      if (fn.call(self, this.at(index), index, this)) return index
    }
    return -1
  }

  some(fn: Callback<unknown>, self?: unknown): boolean {
    return this.findIndex(fn, self) >= 0
  }

  every(fn: Callback<unknown>, self?: unknown): boolean {
    return this.findIndex((...args) => !fn.apply(self, args)) < 0
  }

  toJSON(): unknown {
    return copyOfList(this)
  }

  [Symbol.for('nodejs.util.inspect.custom')](_depth: number, options: object, inspect: Inspect): string {
    const { length } = this
    const shown = inspect(
      Array.from({ length: Math.min(length, SHOWN_MAX) }, (_, at) => copyOf(this.at(at))),
      options,
    )
    const more = length > SHOWN_MAX ? `, ${length - SHOWN_MAX} more` : ''
    return `SharedList(${length}) ${shown}${more}`
  }
}

type Callback<Result> = (this: unknown, element: unknown, index: number, list: SharedList) => Result

/** Methods of arrays that need all elements anyway, or are rare: they work on an array of the elements. */
const BY_ARRAY = [
  'concat',
  'entries',
  'findLast',
  'findLastIndex',
  'flat',
  'flatMap',
  'includes',
  'indexOf',
  'join',
  'keys',
  'lastIndexOf',
  'reduce',
  'reduceRight',
  'slice',
  'toLocaleString',
  'toReversed',
  'toSorted',
  'toSpliced',
  'toString',
  'values',
  'with',
] as const

for (const name of BY_ARRAY) {
  const value = function (this: SharedList, ...args: unknown[]): unknown {
    return ([...this] as unknown as Record<string, (...args: unknown[]) => unknown>)[name](...args)
  }
  Object.defineProperty(SharedList.prototype, name, { value, writable: true, configurable: true })
}

/** The last prototype of all views: it refuses new fields, and otherwise is `Object.prototype`. */
const LAST = new Proxy(Object.freeze(Object.create(null)) as object, {
  get: (_, key, receiver) => Reflect.get(Object.prototype, key, receiver) as unknown,
  has: (_, key) => Reflect.has(Object.prototype, key),
  set: () => false,
})

/**
 * The prototype behind the methods of lists. A list has no elements of its own, so `list[3]` arrives here: it
 * is right, and slow (250 ns). Every index is `in` a list, because a trap for `has` does not see which;
 * the methods of arrays ask so for indices below the length only.
 */
const ELEMENTS = new Proxy(Object.freeze(Object.create(SharedView.prototype)) as object, {
  get(behind, key, receiver: object): unknown {
    return isIndex(key) ? (receiver as SharedList).at(Number(key)) : Reflect.get(behind, key, receiver)
  },
  has: (behind, key) => isIndex(key) || Reflect.has(behind, key),
  set: () => false,
})

function isIndex(key: string | symbol): boolean {
  return typeof key === 'string' && /^(0|[1-9]\d*)$/.test(key)
}

Object.setPrototypeOf(SharedView.prototype, LAST)
Object.setPrototypeOf(SharedList.prototype, ELEMENTS)
// A field of these names is the record's own; otherwise a view looks like a plain object.
for (const { prototype } of [SharedView, SharedRecord, SharedList] as { readonly prototype: object }[]) {
  Reflect.deleteProperty(prototype, 'constructor')
  Object.freeze(prototype)
}

/** A plain copy of a part of a shared value. */
function copyOf(value: unknown): unknown {
  if (value instanceof SharedRecord) return copyOfRecord(value)
  return value instanceof SharedList ? copyOfList(value) : value
}

function copyOfRecord(record: SharedRecord): Record<string, unknown> {
  const copy: Record<string, unknown> = {}
  const at = record[AT]
  for (const { key, missing } of record[TABLE].part.fields) {
    if (missing?.[at] === Missing.absent) continue
    const value = copyOf((record as unknown as Record<string, unknown>)[key])
    if (key !== '__proto__') copy[key] = value
    else Object.defineProperty(copy, key, { value, writable: true, enumerable: true, configurable: true })
  }
  return copy
}

function copyOfList(list: SharedList): unknown {
  const { numbers } = list[TABLE].part
  return numbers === undefined ? Array.from(list, copyOf) : numbers.slice(list[AT], list[END])
}
