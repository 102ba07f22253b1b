/**
 * What all workers share. A store with a file outlives the process, and `flush()` is its commit.
 *
 * Each worker opens them; the first one creates the stores, the others receive the same ones.
 */
import { type Store, store } from 'corespun/store'
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

export let products: Store<Omit<Product, 'stock'>>
export let stock: Store<Stock>
export let questions: Store<readonly Question[]>
/** Here the session that was not used for longest makes room for a new one. */
export let sessionStore: Store
/** Results of searches: a cache. */
export let searches: Store<Listed[]>
/** Under `products`: how often the staff has changed them. */
export let versions: Store<number>
/** Under `password`: that of the staff, without SHOP_PASSWORD. */
export let secrets: Store<string>

/** Before a request is served: in each worker, and under seeds in each run (seeds.ts). */
export function openStores(): void {
  products = store.getOrCreate('shop.products', kept('products'))
  stock = store.getOrCreate('shop.stock', kept('stock'))
  questions = store.getOrCreate('shop.questions', kept('questions'))
  sessionStore = store.getOrCreate('shop.sessions', { file: fileOf('sessions.db'), entriesMax: 100_000 })
  searches = store.getOrCreate('shop.searches', { bytesMax: 16 * 1024 * 1024, ttlMs: 60_000 })
  versions = store.getOrCreate('shop.versions')
  secrets = store.getOrCreate('shop.secrets')
}

export async function flushAll(): Promise<void> {
  await Promise.all([products, stock, questions, sessionStore].map((each) => each.flush()))
}
