/**
 * The normal client beside an attack, for the bench: `client.mjs <port> <isSecure> <count>`.
 *
 * A line `quiet` makes it measure so many requests; `beside` as many and more, until a line `over` comes. It
 * prints what they took, in ms.
 */
import { createInterface } from 'node:readline'
import { Client, percentile } from './victim.mjs'

const [port, isSecure, count] = process.argv.slice(2)
const client = new Client(Number(port), isSecure === 'true')
const lines = createInterface({ input: process.stdin })
let isOver = true

async function measure() {
  const sorted = await client.latencies(Number(count), () => isOver)
  console.log(JSON.stringify({ p50: percentile(sorted, 50), p99: percentile(sorted, 99) }))
}

lines.on('line', (line) => {
  isOver = line !== 'beside'
  if (line !== 'over') void measure()
})
lines.on('close', () => client.close())
