/**
 * What is sold, and the reader of product files, which runs in a zone: a file of any length, checked line by
 * line on another core while it arrives.
 *
 * A file has one product as JSON in each line (NDJSON). A line that does not fit is reported and left out.
 */
import { z } from 'zod'
import { json } from './json.ts'

export const Sku = z.string().regex(/^[a-z\d-]{1,40}$/)
export const Product = z
  .object({
    sku: Sku,
    name: z.string().min(1).max(100),
    text: z.string().max(1000),
    cents: z.int().min(1).max(10_000_000),
    /** Pieces that are free to be sold. */
    stock: z.int().min(0).max(1_000_000),
  })
  .meta({ id: 'Product' })
export type Product = z.infer<typeof Product>
/** A product in a list. */
export const Listed = Product.pick({ sku: true, name: true, cents: true }).meta({ id: 'Listed' })
export type Listed = z.infer<typeof Listed>

/** A line of a file: its product, or what is wrong with it. */
export type Line = { readonly product: Product } | { readonly line: number; readonly fault: string }

const LINE_CHARS_MAX = 16 * 1024
const Text = json(LINE_CHARS_MAX, Product)

export async function* readProducts(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Line> {
  const decoder = new TextDecoder()
  let [rest, line] = ['', 0]
  for await (const chunk of bytes) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = (lines.pop() ?? '').slice(0, LINE_CHARS_MAX + 1) // what is cut off is too long: read reports it
    for (const text of lines) yield* read(text, ++line)
  }
  yield* read(rest + decoder.decode(), ++line)
}

/** An empty line is nothing. */
function* read(text: string, line: number): Generator<Line> {
  if (text.trim() === '') return
  const { success, data, error } = Text.safeParse(text)
  if (success) yield { product: data }
  else yield { line, fault: error.issues.map(({ path, message }) => [...path, message].join(' ')).join('; ') }
}
