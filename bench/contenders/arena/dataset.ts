/**
 * Fifty rows in the shape of HttpArena's dataset, and what its profile json responds with.
 *
 * Made here, since its own file is not part of this repository.
 */
import type { Item } from '../../arena/routes.ts'

export const DATASET: readonly Item[] = Array.from({ length: 50 }, (_, at) => ({
  id: at + 1,
  name: `Product number ${at}`,
  category: at % 2 === 0 ? 'books' : 'tools',
  price: 10 + at * 3,
  quantity: (at % 7) + 1,
  active: at % 3 > 0,
  tags: ['new', `shelf ${at}`],
  rating: { score: at % 5, count: at },
}))

/** So many rows, with totals by this factor. */
export function itemsOf(count: number, factor: number): object {
  const items = DATASET.slice(0, count).map(
    ({ id, name, category, price, quantity, active, tags, rating }) => ({
      id,
      name,
      category,
      price,
      quantity,
      active,
      tags,
      rating,
      total: price * quantity * factor,
    }),
  )
  return { items, count }
}
