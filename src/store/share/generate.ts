/**
 * Makes the classes of views, one for each layout: the fields of a record, or the elements of a list.
 *
 * Each class has code of its own, so the engine sees one kind of column at each read in it, inlines it into
 * the program's loop and removes the view that is made for a single look. Lists of the same layout share
 * their classes, so a new version of a value runs the code that was compiled for the old one. No part of a
 * value enters the code; keys are defined as properties. Where generating code is forbidden, closures do the
 * same, slower.
 */
import { isGeneratingForbidden } from '../../transport/internal.ts'
import type { Plan } from './layout.ts'
import type { Strings } from './strings.ts'
import { AT, END, type Part, SharedList, SharedRecord, type SharedView, TABLE, type Table } from './views.ts'

/** Most classes of a thread; then all are dropped. Views that exist keep theirs. */
const CLASSES_MAX = 1024

export type ViewClass = new (table: Table, at: number, end: number) => SharedView

/** A column as generated code reads it. */
export interface Slot {
  readonly kind: Plan['kind']
  /** Its rows, the table of the views in it, or the function that returns the value of a row of a union. */
  readonly column: unknown
  /** Where each list begins. */
  readonly starts: Uint32Array | undefined
  readonly missing: Uint8Array | undefined
  readonly View: ViewClass | undefined
}

/** The classes of a layout. */
export interface ViewKind {
  readonly View: ViewClass
  readonly Table: new (part: Part, strings: Strings, slots: readonly Slot[]) => Table
}

const kinds = new Map<string, ViewKind>()
const numbers = new WeakMap<ViewClass, number>()
let last = 0

/** The classes of records with these fields. */
export function recordKind(keys: readonly string[], slots: readonly Slot[]): ViewKind {
  return cachedKind(JSON.stringify(keys), slots, () => {
    const { View, Table, getters } = isGeneratingForbidden() ? closures(slots) : generatedRecord(slots)
    const kind = withPrototype(View, SharedRecord.prototype, Table)
    for (const [index, key] of keys.entries())
      Object.defineProperty(View.prototype, key, {
        get: getters[index],
        enumerable: true,
      })
    return kind
  })
}

/** The classes of lists with such elements. */
export function listKind(slot: Slot): ViewKind {
  return cachedKind('', [slot], () => {
    const { View, Table, Elements } = isGeneratingForbidden() ? closureList(slot) : generatedList(slot)
    Object.freeze(Object.setPrototypeOf(Elements.prototype, ITERATOR))
    return withPrototype(View, SharedList.prototype, Table)
  })
}

const ITERATOR = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]())) as object

function cachedKind(keys: string, slots: readonly Slot[], make: () => ViewKind): ViewKind {
  const columns = slots.map(({ kind, column, missing, View }) => {
    const which = View === undefined ? nameOf(column) : numbers.get(View)
    return `${kind} ${which}${missing === undefined ? '' : '?'}`
  })
  const layout = `${keys}:${columns.join()}`
  let kind = kinds.get(layout)
  if (kind === undefined) {
    if (kinds.size >= CLASSES_MAX) kinds.clear()
    kind = make()
    // All views of the layout in this thread read through it.
    Object.freeze(kind.View.prototype)
    kinds.set(layout, kind)
    numbers.set(kind.View, ++last)
  }
  return kind
}

function nameOf(column: unknown): string {
  return String((column as { readonly [Symbol.toStringTag]?: string } | undefined)?.[Symbol.toStringTag])
}

/** Methods of a class that is not derived: a derived one calls the constructor of its base. */
function withPrototype(View: ViewClass, base: object, Table: ViewKind['Table']): ViewKind {
  Reflect.deleteProperty(View.prototype, 'constructor')
  Object.setPrototypeOf(View.prototype, base)
  return { View, Table }
}

interface RecordParts extends ViewKind {
  readonly getters: readonly (() => unknown)[]
}

interface ListParts extends ViewKind {
  readonly Elements: { readonly prototype: object }
}

const RECORD_FIELDS = '[TABLE]; [AT]; constructor(table, at) { this[TABLE] = table; this[AT] = at }'
const LIST_FIELDS = `[TABLE]; [AT]; [END]
  constructor(table, at, end) { this[TABLE] = table; this[AT] = at; this[END] = end }`

function generatedRecord(slots: readonly Slot[]): RecordParts {
  const getter = (slot: Slot, index: number): string =>
    `function () { const table = this[TABLE], row = this[AT]; return ${read(slot, index)} }`
  return evaluated<RecordParts>(
    slots,
    `class View { ${RECORD_FIELDS} }
    return { View, Table, getters: [${slots.map(getter).join(',\n')}] }`,
  )
}

function generatedList(slot: Slot): ListParts {
  return evaluated<ListParts>(
    [slot],
    `class Elements { ${LIST_FIELDS}
      next() {
        const row = this[AT]
        if (row >= this[END]) return { done: true, value: undefined }
        this[AT] = row + 1
        const table = this[TABLE]
        return { done: false, value: ${read(slot, 0)} }
      }
    }
    class View { ${LIST_FIELDS}
      at(index) {
        let row = index | 0
        if (row !== index) row = wholeOf(index)
        const first = this[AT], end = this[END]
        row += row < 0 ? end : first
        if (row < first || row >= end) return undefined
        const table = this[TABLE]
        return ${read(slot, 0)}
      }
      [Symbol.iterator]() { return new Elements(this[TABLE], this[AT], this[END]) }
    }
    return { View, Table, Elements }`,
  )
}

/** The expression for a row of the column with that index in the table. */
function read({ kind, missing }: Slot, index: number): string {
  const value = VALUES[kind](index)
  if (missing === undefined) return value
  return `(table.m${index}[row] === 0 ? ${value} : table.m${index}[row] === 1 ? null : undefined)`
}

const VALUES: Readonly<Record<Plan['kind'], (index: number) => string>> = {
  nothing: () => 'undefined',
  number: (index) => `table.c${index}[row]`,
  boolean: (index) => `table.c${index}[row] === 1`,
  string: (index) => `table.strings.at(table.c${index}[row])`,
  date: (index) => `new Date(table.c${index}[row])`,
  record: (index) => `new V${index}(table.c${index}, row)`,
  list: (index) => `new V${index}(table.c${index}, table.s${index}[row], table.s${index}[row + 1])`,
  union: (index) => `table.c${index}(row)`,
}

/** Runs the code behind the class of its tables. The properties of a table are never added one by one. */
function evaluated<Parts>(slots: readonly Slot[], code: string): Parts {
  const columns = slots.map(
    (slot, index) => `this.c${index} = slots[${index}].column
      ${slot.starts === undefined ? '' : `this.s${index} = slots[${index}].starts`}
      ${slot.missing === undefined ? '' : `this.m${index} = slots[${index}].missing`}`,
  )
  const views = slots.map((slot, index) =>
    slot.View === undefined ? '' : `const V${index} = classes[${index}]`,
  )
  const made = new Function(
    'TABLE',
    'AT',
    'END',
    'wholeOf',
    'classes',
    `'use strict'
    ${views.filter((view) => view !== '').join('\n')}
    class Table { constructor(part, strings, slots) {
      this.part = part
      this.strings = strings
      ${columns.join('\n')}
    } }
    ${code}`,
  ) as (...values: unknown[]) => Parts
  return made(
    TABLE,
    AT,
    END,
    wholeOf,
    slots.map(({ View }) => View),
  )
}

/** An index that is not a small integer, as `Array.prototype.at` takes it. */
function wholeOf(index: unknown): number {
  return Math.trunc(Number(index)) || 0
}

/** A table of views without code of their own. */
class PlainTable implements Table {
  readonly part: Part
  readonly strings: Strings
  readonly slots: readonly Slot[]

  constructor(part: Part, strings: Strings, slots: readonly Slot[]) {
    this.part = part
    this.strings = strings
    this.slots = slots
  }

  value(index: number, row: number): unknown {
    const { kind, column, starts, missing, View } = this.slots[index]
    if (missing !== undefined && missing[row] !== 0) return missing[row] === 1 ? null : undefined
    const rows = column as Uint32Array
    if (kind === 'number') return rows[row]
    if (kind === 'boolean') return rows[row] === 1
    if (kind === 'string') return this.strings.at(rows[row])
    if (kind === 'date') return new Date(rows[row])
    if (kind === 'union') return (column as (row: number) => unknown)(row)
    if (View === undefined) return undefined
    return new View(column as Table, starts?.[row] ?? row, starts?.[row + 1] ?? row)
  }
}

function closures(slots: readonly Slot[]): RecordParts {
  class View {
    readonly [TABLE]: PlainTable
    readonly [AT]: number

    constructor(table: PlainTable, at: number) {
      this[TABLE] = table
      this[AT] = at
    }
  }
  const getters = slots.map(
    (_, index) =>
      function (this: View): unknown {
        return this[TABLE].value(index, this[AT])
      },
  )
  return { View: View as unknown as ViewClass, Table: PlainTable, getters }
}

function closureList(_slot: Slot): ListParts {
  class Elements {
    readonly #list: View
    #index = 0

    constructor(list: View) {
      this.#list = list
    }

    next(): IteratorResult<unknown, undefined> {
      const { length } = this.#list as unknown as SharedList
      if (this.#index >= length) return { done: true, value: undefined }
      return { done: false, value: this.#list.at(this.#index++) }
    }
  }
  class View {
    readonly [TABLE]: PlainTable
    readonly [AT]: number
    readonly [END]: number

    constructor(table: PlainTable, at: number, end: number) {
      this[TABLE] = table
      this[AT] = at
      this[END] = end
    }

    at(index: number): unknown {
      const whole = wholeOf(index)
      const row = whole + (whole < 0 ? this[END] : this[AT])
      return row < this[AT] || row >= this[END] ? undefined : this[TABLE].value(0, row)
    }

    [Symbol.iterator](): Elements {
      return new Elements(this)
    }
  }
  return { View: View as unknown as ViewClass, Table: PlainTable, Elements }
}
