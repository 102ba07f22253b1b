/**
 * Exports that take and return streams, for carried.test.ts.
 *
 * Not a test itself.
 */
export async function* doubled(items: AsyncIterable<number>): AsyncGenerator<number> {
  for await (const item of items) yield item * 2
}

export async function total(items: AsyncIterable<number>): Promise<number> {
  let sum = 0
  for await (const item of items) sum += item
  return sum
}
