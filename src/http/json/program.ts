/**
 * Code that reads texts of one layout.
 *
 * It compares bytes where the layout knows them and asks the cursor for values elsewhere, so an object is
 * made by a literal, with its properties in place. It throws {@link MISS} as soon as a text is another. What
 * it takes is JSON, and means what `JSON.parse` makes of it: between literals of a text that was JSON it only
 * takes values in the place of values.
 */
import type { Cursor } from './cursor.ts'
import { MISS } from './cursor.ts'
import type { Document, Items, Layout, Literal, ObjectLayout } from './layout.ts'

/** Reads from the cursor's place on. @throws {symbol} `MISS` */
export type Program = (cursor: Cursor) => unknown

/** Literals up to so long are compared where they stand, longer ones by a call. */
const INLINE_BYTES_MAX = 32
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT] = [91, 93, 123]
const COMMA = Uint8Array.of(44)

/** Code for a layout; `undefined` where code must not be made from text. */
export function programOf({ before, value, after }: Document): Program | undefined {
  const writer = new Writer()
  writer.expect(before)
  const result = writer.value(value)
  writer.expect(after)
  return writer.program(result)
}

/** Statements, and the names of what they need. */
class Writer {
  readonly #lines: string[] = []
  readonly #literals: Literal[] = []
  #valuesCount = 0

  program(result: string): Program | undefined {
    const literals = this.#literals.map((_, index) => `l${index}`)
    const body = [
      'const bytes = c.bytes, end = c.end',
      'let at = c.at',
      ...this.#lines,
      'if (at !== end) throw MISS',
      `return ${result}`,
    ]
    // In parentheses, by which the engine knows that it will be called, and does not read it twice.
    const text = `'use strict'\nreturn (function read(c) {\n${body.join('\n')}\n})`
    try {
      // eslint-disable-next-line @typescript-eslint/no-implied-eval
      const make = new Function('MISS', ...literals, text) as (...given: unknown[]) => Program
      return make(MISS, ...this.#literals)
    } catch {
      return undefined // code from text is forbidden here, and the engine's parser does it all
    }
  }

  /** Pass over these bytes. */
  expect(literal: Literal): void {
    if (literal.byteLength === 0) return
    this.#lines.push(`if (!(${this.#stands(literal)})) throw MISS`, this.#passed(literal))
  }

  /** Read a value; the name of the variable it is in. */
  value(layout: Layout): string {
    const name = `v${(this.#valuesCount += 1)}`
    this.#lines.push(`let ${name}`)
    if (layout.kind === 'scalar') this.#scalar(name)
    else {
      const byte = layout.kind === 'object' ? OPEN_OBJECT : OPEN_LIST
      this.#lines.push(`if (bytes[at] === ${byte}) {`)
      if (layout.kind === 'object') this.#object(name, layout)
      else this.#list(name, layout.items)
      this.#lines.push('} else {')
      this.#scalar(name) // null, as a rule
      this.#lines.push('}')
    }
    return name
  }

  #scalar(name: string): void {
    this.#lines.push('c.at = at', `${name} = c.scalar()`, 'at = c.at')
  }

  #object(name: string, { fields, close }: ObjectLayout): void {
    const properties: string[] = []
    for (const { before, name: key, value } of fields) {
      this.expect(before)
      properties.push(`${JSON.stringify(key)}: ${this.value(value)}`)
    }
    this.expect(close)
    this.#lines.push(`${name} = { ${properties.join(', ')} }`)
  }

  #list(name: string, items: Items | undefined): void {
    this.#lines.push(`${name} = []`, `if (bytes[at + 1] === ${CLOSE_LIST}) at += 2`, 'else {')
    if (items === undefined) this.#lines.push('throw MISS')
    else {
      const { open, item, separator = separatorLike(open), close = Uint8Array.of(CLOSE_LIST) } = items
      this.expect(open)
      this.#lines.push('for (;;) {')
      this.#lines.push(`${name}.push(${this.value(item)})`)
      this.#lines.push(`if (${this.#stands(separator)}) ${this.#passed(separator)}`)
      this.#lines.push(
        `else if (${this.#stands(close)}) { ${this.#passed(close)}; break }`,
        'else throw MISS',
        '}',
      )
    }
    this.#lines.push('}')
  }

  /** Whether these bytes stand here. */
  #stands(literal: Literal): string {
    const { byteLength } = literal
    if (byteLength > INLINE_BYTES_MAX) {
      const name = `l${this.#literals.push(literal) - 1}`
      return `c.isAt(${name}, at)`
    }
    const compared = Array.from(literal, (byte, index) => `bytes[at + ${index}] === ${byte}`)
    return [`at + ${byteLength} <= end`, ...compared].join(' && ')
  }

  #passed(literal: Literal): string {
    return `at += ${literal.byteLength}`
  }
}

/** What stands between items, to judge by what stands before the first. */
function separatorLike(open: Literal): Literal {
  return Buffer.concat([COMMA, open.subarray(1)])
}
