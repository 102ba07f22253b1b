/**
 * A transfer between two accounts under 500 seeds: each worker may die at each wait, and no cent is lost.
 *
 * `node examples/seeds.ts` plays first the version that a crash breaks, and prints how; then the other.
 */
import assert from 'node:assert/strict'
import { type Checked, CheckError, check } from 'corespun/test'

const transfer = (isRepaired: boolean): Promise<Checked> =>
  check({ seeds: 500 }, async ({ store, zone, step }) => {
    const accounts = store<{ readonly ada: number; readonly bob: number }>()
    accounts.set('all', { ada: 100, bob: 0 })
    const cpu = zone.create('cpu', { workers: 2, deaths: 0.1 })
    const move = async (cents: number): Promise<void> => {
      await step('begin')
      const change = (ada: number, bob: number): void =>
        void accounts.update('all', (was) => ({ ada: was!.ada + ada, bob: was!.bob + bob }))
      if (isRepaired) return change(-cents, cents)
      change(-cents, 0)
      await step('half of it is written')
      change(0, cents)
    }
    await Promise.allSettled([10, 20, 30].map((cents) => cpu.run(move, cents)))
    const { ada, bob } = accounts.get('all')!
    assert.equal(ada + bob, 100)
  })

try {
  await transfer(false)
  assert.fail('a crash between two writes is found')
} catch (error) {
  assert.ok(error instanceof CheckError && error.code === 'CHECK_FAILED')
  console.log(error.message)
}
const { seeds, schedules } = await transfer(true)
console.log(`repaired: ${seeds} seeds, ${schedules} schedules`)
