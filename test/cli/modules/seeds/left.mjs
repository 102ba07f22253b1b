/**
 * A program that ends with code 0 in the middle of its second check.
 *
 * What that would have found is not known.
 */
import { check } from 'corespun/test'

await check({ seeds: 2 }, ({ step }) => step())
await check({ seeds: 9 }, ({ seed }) => (seed === 1 ? process.exit() : undefined))
