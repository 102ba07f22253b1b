/**
 * An order as a durable run: it is charged once, and continues at its step after a crash.
 *
 * `node examples/checkout.ts` plays the crash: the connection is closed under the first run, and a second one
 * takes it up. Pass `sqlite:work.db` and kill the process instead, on Node 22.13 or newer: the same command
 * goes on with the order. `sqlite:work.db 18` is the next order.
 */
import assert from 'node:assert/strict'
import { durable, pause, runs, signal, step } from 'corespun/durable'
import { connect } from 'corespun/fleet'

const charges: string[] = []
const checkout = durable('checkout', function* (order: { readonly id: string; readonly cents: number }) {
  const payment = yield* step('charge', ({ key }) => charges.push(key), [])
  yield* pause(50)
  const isApproved = yield* signal<boolean>('approved', { timeoutMs: 60_000 })
  if (!isApproved) return `order ${order.id}: refused`
  return yield* step('ship', async () => `order ${order.id}: payment ${payment} of ${order.cents} is shipped`)
})

const [, , address = 'memory:shop', id = '17'] = process.argv
const caller = await connect(address)
const shop = await runs(caller, { definitions: [checkout], runsMax: 0 })
const run = await shop.start('checkout', { id, cents: 250 }, { key: `order ${id}` })

const first = await connect(address)
await runs(first, { definitions: [checkout], leaseMs: 200 })
while ((await run.state()).steps.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
await first.close()

const second = await connect(address)
const workers = await runs(second, { definitions: [checkout], leaseMs: 200 })
await run.signal('approved', true)
console.log(await run.result())
const { steps, resumedCount } = await run.state()
assert.equal(steps.filter(({ name }) => name === 'charge').length, 1)
// The process that was killed has charged it, or this one.
assert.ok(charges.length <= 1)
const counts = `(charged ${charges.length} here, resumed ${resumedCount})`
console.log(steps.map(({ name }) => name).join(', '), counts)

await workers.close()
await second.close()
await shop.close()
await caller.close()
