/**
 * Accounts that all threads transfer between, and a payment that waits until it is covered.
 *
 * `node examples/transfers.ts` prints what was paid late, and that no cent was lost.
 */
import { store, zone } from 'corespun'
import { atomically } from 'corespun/store'

const accounts = store.create<number>('accounts', { entriesMax: 1000, eviction: 'none' })
for (let number = 0; number < 10; number += 1) accounts.set(`account ${number}`, 100)
const cpu = zone.create('cpu', { workers: 2 })

const rent = atomically((tx) => {
  const balance = tx.get(accounts, 'rent') ?? 0
  tx.check(balance >= 50)
  tx.set(accounts, 'rent', balance - 50)
  return tx.update(accounts, 'landlord', (before = 0) => before + 50)
})

/** A thousand transfers of one, each at one moment. */
async function transfer(seed: number): Promise<void> {
  const { atomicallySync, store } = await import('corespun/store')
  const accounts = store.get<number>('accounts')
  for (let step = 0; step < 1000; step += 1) {
    const from = `account ${(seed + step * 7) % 10}`
    const to = step % 20 === 0 ? 'rent' : `account ${(seed + step * 3) % 10}`
    atomicallySync((tx) => {
      const balance = tx.get(accounts, from) ?? 0
      if (balance === 0 || from === to) return
      tx.set(accounts, from, balance - 1)
      tx.update(accounts, to, (before = 0) => before + 1)
    })
  }
}
await Promise.all([1, 2].map((seed) => cpu.run(transfer, seed)))

let sum = 0
for (const [, cents] of accounts) sum += cents
console.log(`the landlord has ${await rent}; all together ${sum}`)
await cpu.close()
accounts.close()
