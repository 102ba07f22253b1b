/**
 * Functions that the tests of `corespun run` map over items; each does what a user's function may do.
 * They are plain on purpose: what is tested is what happens around them.
 */
import { appendFileSync, existsSync } from 'node:fs'

const sleeper = new Int32Array(new SharedArrayBuffer(4))
const sleep = (ms) => Atomics.wait(sleeper, 0, 0, ms)

export default (item) => ({ got: item })
export const nested = { inside: (item) => `in ${item}` }
export const seven = 7
export const nothing = () => {}
export const big = () => 1n
export const chars = (item) => item.length
export const failOdd = (item) => {
  if (item % 2 === 1) throw Object.assign(new RangeError(`odd ${item}`), { code: 'ODD' })
  return item
}
export const failThird = (item) => {
  if (item === '3') throw new Error('third')
  return item
}
export const talk = (item) => {
  console.log(`console ${item}`)
  process.stdout.write(`stdout ${item}\n`)
  return item
}
export const laterFirst = async (item) => {
  await new Promise((done) => setTimeout(done, item === '1' ? 1500 : 1))
  return item
}
export const slow = (item) => {
  sleep(2)
  return item
}
export const hangOn2 = (item) => {
  while (item === '2');
  return item
}
export const waitOn2 = (item) => (item === '2' ? new Promise(() => {}) : item)
/** For ever on 2, a while on the others. */
export const waitLongOn2 = (item) =>
  item === '2' ? new Promise(() => {}) : new Promise((done) => setTimeout(done, 300, item))
export const exitOn2 = (item) => {
  if (item === '2') process.exit(3)
  return item
}
/** Records in the file named by RAN that it has run; the worker of items that end in 77 exits. */
export const exitOn77 = (item) => {
  appendFileSync(process.env.RAN, `${item}\n`)
  if (item.endsWith('77')) process.exit(3)
  return item
}
export const wide = (item) => `${item} ${'x'.repeat(1000)}`

/** Report on standard error that the item runs, and continue when the file named by HOLD exists. */
export const hold = (item) => {
  appendFileSync(2, `runs ${item}\n`)
  while (!existsSync(process.env.HOLD)) sleep(5)
  return item
}
/** As hold, for item 3 alone. */
export const holdOn3 = (item) => (item === '3' ? hold(item) : item)
/** As hold, for item 1500 alone. */
export const holdOn1500 = (item) => (item === '1500' ? hold(item) : item)
