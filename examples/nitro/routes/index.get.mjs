/**
 * Prices that are made once, for all workers, until they are dropped.
 * Their version shows who made them.
 */
import { randomUUID } from 'node:crypto'
import { defineCachedEventHandler } from 'nitropack/runtime'

export default defineCachedEventHandler(() => ({ version: randomUUID() }), { maxAge: 3600 })
