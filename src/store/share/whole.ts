/**
 * A shared value in this thread: its memory, the parts that views can be of, and how a view travels.
 *
 * A view travels as a reference: the memory and a position in it. A thread opens each memory once and finds
 * it again by its number, so the strings that it has decoded are kept across calls. The memory is freed by
 * the engine when no thread has a view and no frame or store refers to it. The collector counts no shared
 * memory, so each thread reports how much a value keeps; it would not run otherwise.
 */
import { types } from 'node:util'
import { native } from '../../native/index.ts'
import { registerHandle } from '../../transport/internal.ts'
import { listKind, recordKind, type Slot, type ViewClass } from './generate.ts'
import { Header, HEADER_BYTES, MAGIC, numbersAt, type Numbers, type Plan, type WholePlan } from './layout.ts'
import { Strings } from './strings.ts'
import { AT, END, type Field, type Part, SharedList, SharedView, TABLE, type Table } from './views.ts'

interface Opened {
  readonly id: number
  readonly bytes: number
}

const opened = new Map<number, WeakRef<Whole>>()
const collected = new FinalizationRegistry<Opened>(({ id, bytes }) => {
  if (opened.get(id)?.deref() === undefined) opened.delete(id)
  native.memoryCounts(-bytes)
})

class Whole {
  readonly id: number
  readonly memory: SharedArrayBuffer
  readonly parts: Part[] = []
  /** The whole value, as the only element of a list. */
  readonly value: SharedView
  readonly #strings: Strings

  /** @throws {TypeError | RangeError} when the memory has no such value. */
  constructor(id: number, memory: SharedArrayBuffer) {
    this.id = id
    this.memory = memory
    const { strings, root } = planIn(memory)
    this.#strings = new Strings(memory, strings)
    this.value = (this.#listOf(root, 1, false).part.view(0, 1) as SharedList).at(0) as SharedView
    native.memoryCounts(memory.byteLength)
    opened.set(id, new WeakRef(this))
    collected.register(this, { id, bytes: memory.byteLength })
  }

  #slot(plan: Plan, rows: number): Slot {
    const { memory } = this
    const missing = plan.missing === 0 ? undefined : new Uint8Array(memory, plan.missing, rows)
    const slot = (column: unknown, View?: ViewClass, starts?: Uint32Array): Slot => ({
      kind: plan.kind,
      column,
      starts,
      missing,
      View,
    })
    switch (plan.kind) {
      case 'nothing':
        return slot(undefined)
      case 'number':
        return slot(numbersAt(plan.type, memory, plan.at, rows))
      case 'boolean':
        return slot(new Uint8Array(memory, plan.at, rows))
      case 'string':
        return slot(new Uint32Array(memory, plan.at, rows))
      case 'date':
        return slot(new Float64Array(memory, plan.at, rows))
      case 'record': {
        const { table, View } = this.#recordOf(plan, rows)
        return slot(table, View)
      }
      case 'list': {
        const { table, View } = this.#listOf(plan.of, plan.rows, plan.isTyped)
        return slot(table, View, new Uint32Array(memory, plan.at, rows + 1))
      }
      case 'union': {
        const tags = new Uint8Array(memory, plan.at, rows)
        const slots = new Uint32Array(memory, plan.slots, rows)
        const lists = plan.of.map((rowsOfKind, tag) => {
          const { part } = this.#listOf(rowsOfKind, plan.rows[tag], false)
          return part.view(0, plan.rows[tag]) as SharedList
        })
        return slot((row: number): unknown => lists[tags[row]].at(slots[row]))
      }
    }
  }

  #recordOf({ keys, of }: Plan & { kind: 'record' }, rows: number): Views {
    const slots = of.map((plan) => this.#slot(plan, rows))
    const fields = keys.map((key, index): Field => ({ key, missing: slots[index].missing }))
    return this.#part({ rows, fields, numbers: undefined }, slots, recordKind(keys, slots))
  }

  #listOf(plan: Plan, rows: number, isTyped: boolean): Views {
    const slot = this.#slot(plan, rows)
    const numbers = isTyped ? (slot.column as Numbers) : undefined
    return this.#part({ rows, fields: [], numbers }, [slot], listKind(slot))
  }

  #part(
    what: Pick<Part, 'rows' | 'fields' | 'numbers'>,
    slots: readonly Slot[],
    { View, Table }: ReturnType<typeof listKind>,
  ): Views {
    const view = (at: number, end: number): SharedView => new View(table, at, end)
    const part: Part = { whole: this, number: this.parts.length, ...what, view }
    const table = new Table(part, this.#strings, slots)
    this.parts.push(part)
    return { part, table, View }
  }
}

interface Views {
  readonly part: Part
  readonly table: Table
  readonly View: ViewClass
}

/** @throws {TypeError | RangeError | SyntaxError} for memory without a plan. */
function planIn(memory: SharedArrayBuffer): WholePlan {
  if (!types.isSharedArrayBuffer(memory) || memory.byteLength < HEADER_BYTES)
    throw new TypeError('not the memory of a shared value')
  const header = new Uint32Array(memory, 0, Header.words)
  if (header[Header.magic] !== MAGIC) throw new TypeError('not the memory of a shared value')
  const text = new Uint8Array(memory, header[Header.planAt] * 8, header[Header.planBytes]).slice()
  return JSON.parse(new TextDecoder().decode(text)) as WholePlan
}

/** The value in memory that was just written. */
export function openNew(memory: SharedArrayBuffer): SharedView {
  // The core numbers shared memory and uses no number again; the reference is not needed.
  const id = native.bufferShare(memory)
  native.bufferRelease(id)
  return new Whole(id, memory).value
}

interface SavedView {
  readonly id: number
  readonly memory: SharedArrayBuffer
  readonly part: number
  readonly at: number
  readonly end: number
}

registerHandle({
  tag: 'corespun.Shared',
  is: SharedView,
  save(view: SharedView): SavedView {
    const { whole, number } = view[TABLE].part
    const end = view instanceof SharedList ? view[END] : view[AT] + 1
    return { id: whole.id, memory: whole.memory, part: number, at: view[AT], end }
  },
  load({ id, memory, part, at, end }: SavedView): SharedView {
    const { parts } = opened.get(id)?.deref() ?? new Whole(id, memory)
    const found = parts[part]
    if (!(Number.isInteger(at) && Number.isInteger(end) && 0 <= at && at <= end && end <= found.rows))
      throw new RangeError('a view outside of its value')
    return found.view(at, end)
  },
})
