/**
 * Drops what is cached.
 * The next request, to whichever worker, makes it again.
 */
import { defineEventHandler } from 'h3'
import { useStorage } from 'nitropack/runtime'

export default defineEventHandler(async () => {
  await useStorage('cache').clear()
  return 'dropped'
})
