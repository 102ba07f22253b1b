/**
 * One pipeline with failures in its types: parse, check, price, with the price computed in a zone.
 *
 * `node examples/orders.ts` prints the outcomes of three orders.
 */
import { effect, fail, ifThenElse, lift, id } from 'corespun/arrow'
import { zone } from 'corespun/zone'

interface Order {
  readonly item: string
  readonly count: number
}

const prices = zone.create('prices', { workers: 1 })

const parse = effect(
  (text: string) => JSON.parse(text) as Order,
  () => 'not JSON' as const,
)
const checked = ifThenElse(
  lift((order: Order) => order.count > 0),
  id<Order>(),
  fail('nothing ordered' as const),
)
const price = lift((order: Order) => order.count * order.item.length).on(prices)
const whole = parse.andThen(checked).andThen(price).named('order')

for (const text of ['{"item":"pear","count":3}', '{"item":"fig","count":0}', '{']) {
  const exit = await whole.runExit(text)
  console.log(exit.kind === 'success' ? `costs ${exit.value}` : exit.kind === 'failure' ? exit.error : exit)
}
await prices.close()
