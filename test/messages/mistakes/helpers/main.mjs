/**
 * A main module that declares one of its own functions as exported.
 *
 * The worker imports it and so runs the whole program again.
 */
import { arrow, zone } from 'corespun'

const main = zone.create('main', { workers: 1 })
const rate = 1.19
export const price = (net) => net * rate
const priced = arrow.lift(arrow.exported(import.meta.url, price)).on(main)
await priced.run(1).catch(({ code, message }) => {
  console.log(code, message)
  process.exitCode = 1
})
await main.close()
