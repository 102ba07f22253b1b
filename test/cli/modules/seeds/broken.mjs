/**
 * A program that fails beside its check.
 *
 * It has printed why.
 */
import { check } from 'corespun/test'

await check({ seeds: 4 }, () => {})
console.log('the reason')
process.exit(3)
