/**
 * Tasks that pass exports of this module to another zone as values, for modules.test.ts.
 *
 * The worker of that zone has not imported this module when it reads them.
 */
import { zone } from './index.ts'

let calls = 0

export const increment = (value: number): number => value + 1

/** Uses a variable of the module, so that its text alone is not enough. */
export const counted = (value: number): number => value + (calls += 1)

export const apply = (fn: (value: number) => number, value: number): number => fn(value)

export async function* doubled(items: AsyncIterable<number>): AsyncGenerator<number> {
  for await (const item of items) yield item * 2
}

/** `counted` is passed to a function of no module, whose worker has imported nothing for it. */
export const passed = (id: string, name: string): Promise<number> =>
  name === 'counted'
    ? zone.get(id).run((fn: (value: number) => number, value: number) => fn(value), counted, 1)
    : zone.get(id).run(apply, increment, 1)

export const returned = (): ((value: number) => number) => increment

export async function streamed(id: string): Promise<number[]> {
  const all: number[] = []
  for await (const item of zone.get(id).stream(doubled, [1, 2])) all.push(item)
  return all
}
