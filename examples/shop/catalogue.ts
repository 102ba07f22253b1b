/**
 * The products: searched, with results that all workers share, and looked up with the pieces in stock.
 * A change of the staff begins a new version of the results; old ones are not read again, and expire.
 */
import { readFileSync } from 'node:fs'
import { route } from 'corespun/http'
import { z } from 'zod'
import { Listed, Product, Sku } from './product.ts'
import { products, searches, stock, versions } from './stores.ts'

const FOUND_MAX = 100
const Search = z.object({ search: z.string().trim().toLowerCase().max(50).default('') })
export const Missing = z.object({ reason: z.string() })

export const catalogue = {
  '/api/products': {
    GET: route(
      { summary: 'Products with a text in their name', query: Search, responses: { 200: z.array(Listed) } },
      ({ query }) => find(query.search),
    ),
  },
  '/api/products/:sku': {
    GET: route(
      { summary: 'A product', params: z.object({ sku: Sku }), responses: { 200: Product, 404: Missing } },
      ({ params: { sku }, respond }) => {
        const product = products.get(sku)
        if (product === undefined) return respond(404, { reason: `there is no product ${sku}` })
        return { ...product, stock: stock.get(sku)?.free ?? 0 }
      },
    ),
  },
}

/** Of equal searches at the same time one computes, in whichever worker. */
function find(search: string): Promise<Listed[]> {
  const version = versions.get('products') ?? 0
  return searches.getOrCompute(`${version} ${search}`, () =>
    [...products.entries()]
      .filter(([, { name }]) => name.toLowerCase().includes(search))
      .map(([sku, { name, cents }]) => ({ sku, name, cents }))
      .sort((a, b) => a.name.localeCompare(b.name))
      .slice(0, FOUND_MAX),
  )
}

/** Writes a product; pieces that orders hold stay theirs. */
export function put({ stock: free, ...product }: Product): void {
  products.set(product.sku, product)
  stock.update(product.sku, (pieces) => ({ held: {}, ...pieces, free }))
}

/**
 * A new shop begins with some products. Workers that start at once write the same ones, and one that starts
 * after a crash those that are missing: each file is that of another moment.
 */
export function fill(list: readonly Product[] = someProducts()): void {
  for (const { stock: free, ...product } of list) {
    products.compareAndSet(product.sku, undefined, product)
    stock.compareAndSet(product.sku, undefined, { free, held: {} })
  }
}

function someProducts(): Product[] {
  const text = readFileSync(new URL('./products.ndjson', import.meta.url), 'utf8')
  return text
    .trim()
    .split('\n')
    .map((line) => Product.parse(JSON.parse(line)))
}
