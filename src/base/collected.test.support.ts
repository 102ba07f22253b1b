/**
 * A list of what an iterable yields, for tests.
 *
 * `Array.fromAsync` does it in newer Nodes alone: Node 20 is without.
 */
export async function collected<T>(values: AsyncIterable<T> | Iterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const value of values) all.push(value)
  return all
}
