/**
 * What a JSON text looks like around its values: the keys, in their order, and the blanks between tokens.
 *
 * A client that sends the same kind of thing again sends the same bytes there. Layouts are read from texts
 * that have been parsed, so nothing is checked. What says little of later texts, or is too large for what it
 * gains, has none.
 */
import { utf8Of } from '../native-text.ts'

/** Bytes that stand between values. */
export type Literal = Uint8Array

/** What stands in one place: a string, number, true, false or null; or one of the others, or such a word. */
export type Layout = Scalar | ObjectLayout | ListLayout

interface Scalar {
  readonly kind: 'scalar'
}

/** An object with these properties, in this order. */
export interface ObjectLayout {
  readonly kind: 'object'
  readonly fields: readonly Field[]
  readonly close: Literal
}

/** A property, and all that stands between the value before and its own. */
export interface Field {
  readonly before: Literal
  readonly name: string
  readonly value: Layout
}

/**
 * A list of any length whose items have one layout; `items` is missing when all that were seen were empty.
 */
export interface ListLayout {
  readonly kind: 'list'
  readonly items: Items | undefined
}

/** What is between the items of a list, and they. */
export interface Items {
  readonly open: Literal
  readonly item: Layout
  /** Missing when none had two. */
  readonly separator: Literal | undefined
  readonly close: Literal | undefined
}

/** A whole text. */
export interface Document {
  readonly before: Literal
  readonly value: Layout
  readonly after: Literal
}

/** The engine's own: it has taken the text, and nothing is checked here. */
const { parse } = JSON
const SCALAR: Scalar = { kind: 'scalar' }
const [QUOTE, COMMA, OPEN_LIST, BACKSLASH, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [
  34, 44, 91, 92, 93, 123, 125,
]
const BLANKS: readonly number[] = [32, 9, 10, 13]
const DEPTH_MAX = 16
/** Less than one byte in so many of names and what is around them, and the engine's parser is as fast. */
const BYTES_PER_NAME_BYTE = 4
/** Bytes of literals, and values: they become code. With some hundred values it is slower than the parser. */
const [LITERAL_BYTES_MAX, VALUES_MAX] = [2048, 128]

/** The layout of a text that `JSON.parse` has taken; `undefined` when later texts can hardly have it. */
export function layoutOf(bytes: Uint8Array): Document | undefined {
  // Of a copy, which literals are parts of: a batch's memory is used again.
  const scan = new Scan(Uint8Array.from(bytes))
  scan.blanks()
  const before = scan.since(0)
  const value = scan.value(0)
  if (value === undefined || value.kind === 'scalar') return undefined
  const from = scan.at
  scan.at = bytes.byteLength
  const after = scan.since(from)
  if (scan.nameBytes * BYTES_PER_NAME_BYTE < bytes.byteLength) return undefined
  const size = before.byteLength + sizeOf(value) + after.byteLength
  const fits = size <= LITERAL_BYTES_MAX && valuesOf(value) <= VALUES_MAX
  return fits ? { before, value, after } : undefined
}

/** One passage over the bytes. What has no layout is `undefined`. */
class Scan {
  readonly #bytes: Uint8Array
  at = 0
  /** Bytes of names and around them so far. */
  nameBytes = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  value(depth: number): Layout | undefined {
    const byte = this.#bytes[this.at]
    if (byte === OPEN_OBJECT) return depth < DEPTH_MAX ? this.#object(depth + 1) : undefined
    if (byte === OPEN_LIST) return depth < DEPTH_MAX ? this.#list(depth + 1) : undefined
    if (byte === QUOTE) this.#string()
    else while (this.at < this.#bytes.byteLength && !this.#isBehindWord()) this.at += 1
    return SCALAR
  }

  blanks(): void {
    while (BLANKS.includes(this.#bytes[this.at]!)) this.at += 1
  }

  since(from: number): Literal {
    return this.#bytes.subarray(from, this.at)
  }

  #object(depth: number): ObjectLayout | undefined {
    const fields: Field[] = []
    let from = this.at
    do {
      this.at += 1
      this.blanks()
      if (this.#bytes[this.at] === CLOSE_OBJECT) break
      const name = this.#string()
      this.blanks()
      this.at += 1
      this.blanks()
      const before = this.since(from)
      this.nameBytes += before.byteLength
      const value = this.value(depth)
      // A property of that name is no prototype in JSON; written as code it were.
      if (value === undefined || name === '__proto__') return undefined
      fields.push({ before, name, value })
      from = this.at
      this.blanks()
    } while (this.#bytes[this.at] === COMMA)
    this.at += 1
    return { kind: 'object', fields, close: this.since(from) }
  }

  #list(depth: number): ListLayout | undefined {
    const from = this.at
    this.at += 1
    this.blanks()
    const open = this.since(from)
    let items: Items | undefined
    if (this.#bytes[this.at] === CLOSE_LIST) {
      this.at += 1
      return { kind: 'list', items }
    }
    for (;;) {
      const item = this.value(depth)
      if (item === undefined) return undefined
      const end = this.at
      this.blanks()
      const isLast = this.#bytes[this.at] === CLOSE_LIST
      this.at += 1
      if (!isLast) this.blanks()
      const behind = this.since(end)
      const seen: Items = {
        open,
        item,
        separator: isLast ? undefined : behind,
        close: isLast ? behind : undefined,
      }
      items = items === undefined ? seen : mergedItems(items, seen)
      if (items === undefined) return undefined
      if (isLast) return { kind: 'list', items }
    }
  }

  #string(): string {
    const from = this.at
    this.at += 1
    while (this.#bytes[this.at] !== QUOTE) this.at += this.#bytes[this.at] === BACKSLASH ? 2 : 1
    this.at += 1
    return parse(utf8Of(this.#bytes, from, this.at)) as string
  }

  #isBehindWord(): boolean {
    const byte = this.#bytes[this.at]!
    return byte === COMMA || byte === CLOSE_LIST || byte === CLOSE_OBJECT || BLANKS.includes(byte)
  }
}

/** A layout that has both, as items of one list have; `undefined` when none does. */
function merged(one: Layout, other: Layout): Layout | undefined {
  if (one.kind === 'scalar') return other
  if (other.kind === 'scalar') return one
  if (one.kind === 'object') return other.kind === 'object' ? mergedObjects(one, other) : undefined
  if (other.kind === 'object') return undefined
  if (one.items === undefined) return other
  if (other.items === undefined) return one
  const items = mergedItems(one.items, other.items)
  return items === undefined ? undefined : { kind: 'list', items }
}

function mergedObjects(one: ObjectLayout, other: ObjectLayout): ObjectLayout | undefined {
  if (one.fields.length !== other.fields.length || !isSame(one.close, other.close)) return undefined
  const fields: Field[] = []
  for (const [index, { before, name, value }] of one.fields.entries()) {
    const there = other.fields[index]!
    const both = isSame(before, there.before) ? merged(value, there.value) : undefined
    if (both === undefined) return undefined
    fields.push({ before, name, value: both })
  }
  return { ...one, fields }
}

function mergedItems(one: Items, other: Items): Items | undefined {
  const item = merged(one.item, other.item)
  const isAlike =
    isSame(one.open, other.open) && isSame(one.separator, other.separator) && isSame(one.close, other.close)
  if (item === undefined || !isAlike) return undefined
  const { open, separator = other.separator, close = other.close } = one
  return { open, item, separator, close }
}

/** Whether two literals are alike as far as both are known. */
function isSame(one: Literal | undefined, other: Literal | undefined): boolean {
  return one === undefined || other === undefined || Buffer.compare(one, other) === 0
}

/** Bytes of its literals. */
function sizeOf(layout: Layout): number {
  if (layout.kind === 'scalar') return 0
  if (layout.kind === 'object') {
    const sizes = layout.fields.map(({ before, value }) => before.byteLength + sizeOf(value))
    return sizes.reduce((sum, size) => sum + size, layout.close.byteLength)
  }
  const { items } = layout
  if (items === undefined) return 0
  const ends = (items.separator?.byteLength ?? 0) + (items.close?.byteLength ?? 0)
  return items.open.byteLength + ends + sizeOf(items.item)
}

/** Places of values in it, itself among them. */
function valuesOf(layout: Layout): number {
  if (layout.kind === 'scalar') return 1
  if (layout.kind === 'list') return layout.items === undefined ? 1 : 1 + valuesOf(layout.items.item)
  return layout.fields.reduce((sum, { value }) => sum + valuesOf(value), 1)
}
