/**
 * Tasks that pass exports of this module to another zone as values, for src/zone/modules.test.ts.
 *
 * The worker of that zone has not imported this module when it reads them.
 */
import { zone } from '../../../dist/zone/index.js'

let calls = 0

export const increment = (value) => value + 1

/** Uses a variable of the module, so that its text alone is not enough. */
export const counted = (value) => value + (calls += 1)

export const apply = (fn, value) => fn(value)

export async function* doubled(items) {
  for await (const item of items) yield item * 2
}

export const passed = (id, name) => zone.get(id).run(apply, name === 'counted' ? counted : increment, 1)

export const returned = () => increment

export async function streamed(id) {
  const all = []
  for await (const item of zone.get(id).stream(doubled, [1, 2])) all.push(item)
  return all
}
