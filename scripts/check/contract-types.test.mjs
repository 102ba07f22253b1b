/**
 * The count of what a contract costs the compiler finds a route that costs too much.
 *
 * The planted limit is below what any route costs.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contractTypes } from './contract-types.mjs'

test('a route that costs more instantiations than allowed fails the check, with their number', async () => {
  await assert.rejects(
    contractTypes(10),
    /^Stop: \d{3,} instantiations of types a route with a contract, at most 10$/,
  )
})
