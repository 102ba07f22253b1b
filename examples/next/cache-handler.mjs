/**
 * The cache of Next.js, in a store of the process: what one worker renders or revalidates, all of them see.
 *
 * Each worker has objects of this class; entries and times of revalidation belong to the process. With
 * `fleet.store` of corespun/fleet in place of `store`, and `await`, all machines share them.
 */
import { store } from 'corespun/store'

const entries = store.getOrCreate('next', { bytesMax: 256 * 2 ** 20 })
/** When a tag was revalidated, in ms since 1970. */
const revalidated = store.getOrCreate('next-tags', { entriesMax: 100_000 })

export default class CacheHandler {
  async get(key, { tags = [], softTags = [] } = {}) {
    const entry = entries.get(key)
    if (entry === undefined) return null
    const all = [...entry.tags, ...tags, ...softTags]
    return all.some((tag) => (revalidated.get(tag) ?? 0) >= entry.lastModified) ? null : entry
  }

  async set(key, value, { tags = [] } = {}) {
    const ofPage = value?.headers?.['x-next-cache-tags']?.split(',') ?? []
    entries.set(key, { value, lastModified: Date.now(), tags: [...tags, ...ofPage] })
  }

  async revalidateTag(tags) {
    for (const tag of [tags].flat()) revalidated.set(tag, Date.now())
  }

  resetRequestCache() {}
}
