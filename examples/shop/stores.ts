/**
 * What all workers share. A store with a file outlives the process, and `flush()` is its commit.
 *
 * Each worker loads this module; the first one creates the stores, the others receive the same ones.
 */
import { store } from 'corespun/store'
import type { Listed, Product } from './product.ts'
import { fileOf } from './settings.ts'

/** The pieces of a product. */
export interface Stock {
  /** Those that can be ordered. */
  readonly free: number
  /** Those of orders that are not complete, by order. */
  readonly held: Readonly<Record<string, number>>
}

export interface Question {
  readonly name: string
  readonly text: string
  readonly at: string
}

/** Full is an error (503): nothing that was promised is dropped. */
const kept = (name: string) => ({ file: fileOf(`${name}.db`), entriesMax: 10_000, eviction: 'none' }) as const

export const products = store.getOrCreate<Omit<Product, 'stock'>>('shop.products', kept('products'))
export const stock = store.getOrCreate<Stock>('shop.stock', kept('stock'))
export const questions = store.getOrCreate<readonly Question[]>('shop.questions', kept('questions'))
/** Here the session that was not used for longest makes room for a new one. */
export const sessionStore = store.getOrCreate('shop.sessions', {
  file: fileOf('sessions.db'),
  entriesMax: 100_000,
})

/** Results of searches: a cache. */
export const searches = store.getOrCreate<Listed[]>('shop.searches', {
  bytesMax: 16 * 1024 * 1024,
  ttlMs: 60_000,
})
/** Under `products`: how often the staff has changed them. */
export const versions = store.getOrCreate<number>('shop.versions')
/** Under `password`: that of the staff, without SHOP_PASSWORD. */
export const secrets = store.getOrCreate<string>('shop.secrets')

export async function flushAll(): Promise<void> {
  await Promise.all([products, stock, questions, sessionStore].map((each) => each.flush()))
}
