/**
 * The records of table `share`, and what each thread computes of them: an answer that is known.
 *
 * Each loop is a function of its own, so that the engine meets only what its caller passes.
 */

/** A record of a price list. */
export interface Price {
  readonly id: number
  readonly cents: number
  readonly weight: number
  readonly stock: number
  readonly vat: number
  readonly name: string
  readonly group: string
  readonly isNew: boolean
  readonly tags: readonly string[]
}

/** What makes a list large: every name is another string, groups and tags repeat. */
export function pricesOf(count: number): Price[] {
  return Array.from({ length: count }, (_, id) => ({
    id,
    cents: (id * 7) % 10_000,
    weight: (id % 1000) / 4,
    stock: id % 50,
    vat: id % 3,
    name: `product ${id}`,
    group: `group ${id % 40}`,
    isNew: id % 10 === 0,
    tags: [`tag ${id % 7}`, `tag ${id % 11}`],
  }))
}

/** What {@link read} returns for the first `count` records. */
export function answerOf(count: number): number {
  let sum = 0
  for (let id = 0; id < count; id++) {
    sum += ((id * 7) % 10_000) + (id % 1000) / 4 + (id % 50) + (id % 3)
    sum += `group ${id % 40}`.length + `tag ${id % 7}`.length + (id % 10 === 0 ? 1 : 0)
  }
  return sum
}

/** Reads four numbers, two strings and a flag of each record. */
export function read(prices: readonly Price[]): number {
  let sum = 0
  for (let index = 0; index < prices.length; index++) {
    const price = prices.at(index) as Price
    sum += price.cents + price.weight + price.stock + price.vat
    sum += price.group.length + (price.tags.at(0) as string).length + (price.isNew ? 1 : 0)
  }
  return sum
}

/** Reads one number of each record. */
export function readOne(prices: readonly Price[]): number {
  let sum = 0
  for (let index = 0; index < prices.length; index++) sum += (prices.at(index) as Price).cents
  return sum
}

/** Reads five numbers of each record. */
export function readFive(prices: readonly Price[]): number {
  let sum = 0
  for (let index = 0; index < prices.length; index++) {
    const { id, cents, weight, stock, vat } = prices.at(index) as Price
    sum += id + cents + weight + stock + vat
  }
  return sum
}

/** Reads one number of 64 records, again and again. */
export function readKept(prices: readonly Price[], rounds: number): number {
  let sum = 0
  for (let round = 0; round < rounds; round++)
    for (let index = 0; index < prices.length; index++) sum += prices[index].cents
  return sum
}
