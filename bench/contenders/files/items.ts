/**
 * The items of table `files` that are no files, and the work on one: a loop of known length.
 *
 * Objects of 64 shapes, since real items differ. The work needs nothing from outside of itself, so that it
 * travels to a zone as it is.
 */

/** An item: beside these a choice of six fields. */
export interface Item {
  readonly id: number
  readonly rounds: number
}

export interface Spun {
  readonly id: number
  readonly hash: number
  readonly keys: number
}

/** Rounds of the loop in a microsecond: on a core of 2025, and only about. */
const ROUNDS_PER_US = 450
const MIX_US = { least: 20, most: 5000 }
const FIELDS = 6

/** @param us What an item takes, about; `mix`: any time from 20 µs to 5 ms, small ones as often as large. */
export function itemsOf(count: number, us: number | 'mix'): Item[] {
  let random = 7
  return Array.from({ length: count }, (_, id) => {
    // The generator of Park and Miller.
    random = (random * 48_271) % 2_147_483_647
    const share = random / 2_147_483_647
    const mine = us === 'mix' ? MIX_US.least + (MIX_US.most - MIX_US.least) * share : us
    const item: Record<string, unknown> = { id, rounds: Math.round(mine * ROUNDS_PER_US) }
    for (let field = 0; field < FIELDS; field += 1) {
      if (((id >> field) & 1) === 1) item[`field${field}`] = field % 2 === 0 ? id * field : `text ${id}`
    }
    return item as unknown as Item
  })
}

/**
 * The work on one item. Every round stays an integer of 32 bits: of a loop whose sum overflows, Node 24
 * makes code of two speeds, 4.6 or 17 ms for the same rounds, by chance in each process.
 */
export function spin(item: Item): Spun {
  let hash = item.id
  for (let round = item.rounds; round > 0; round -= 1) {
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) ^ round
  }
  return { id: item.id, hash, keys: Object.keys(item).length }
}
