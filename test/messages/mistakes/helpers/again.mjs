/**
 * A main module that calls its own export in a zone, and whose second run there fails nowhere.
 *
 * Only the warning shows that the program has run twice.
 */
import { zone } from 'corespun'

const again = zone.getOrCreate('again', { workers: 1 })
export const double = (net) => net * 2
again
  .execute(import.meta.url, 'double', [1])
  .then(() => again.close())
  .catch(() => {})
