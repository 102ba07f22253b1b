/**
 * A user's first program, by `import`.
 * What it prints is what test/package/package.test.mjs expects.
 */
import { zone } from 'corespun'

const cpu = zone.create('cpu', { workers: 1 })
console.log('import', await cpu.run((a, b) => a * b, 6, 7))
await cpu.close()
