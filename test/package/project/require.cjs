/**
 * A user's first program, by `require`.
 * What it prints is what test/package/package.test.mjs expects.
 */
const { zone } = require('corespun')

async function main() {
  const cpu = zone.create('cpu', { workers: 1 })
  console.log('require', await cpu.run((a, b) => a * b, 6, 7))
  await cpu.close()
}
main()
