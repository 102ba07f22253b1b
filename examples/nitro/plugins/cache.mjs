/**
 * The cache of Nitro, in a store of the process: what one worker has made or dropped is so for all of them.
 * With `fleet.store` of corespun/fleet in place of `store`, and `await`, all machines share it.
 */
import { store } from 'corespun/store'
import { defineNitroPlugin, useStorage } from 'nitropack/runtime'

const entries = store.getOrCreate('nitro', { bytesMax: 256 * 2 ** 20 })

export default defineNitroPlugin(() => {
  useStorage().mount('cache', {
    name: 'corespun',
    hasItem: (key) => entries.has(key),
    getItem: (key) => entries.get(key) ?? null,
    setItem: (key, value, { ttl } = {}) => entries.set(key, value, ttl ? { ttlMs: ttl * 1000 } : {}),
    removeItem: (key) => void entries.delete(key),
    getKeys: () => [...entries.keys()],
    clear: () => entries.clear(),
  })
})
