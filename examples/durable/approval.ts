/**
 * An expense that a person approves over HTTP, as a durable run: it waits for days outside of memory.
 *
 * `node examples/durable/approval.ts` plays the person, who approves one and leaves the other one lying.
 */
import assert from 'node:assert/strict'
import { durable, runs, signal, step } from 'corespun/durable'
import { connect } from 'corespun/fleet'
import { createApp } from 'corespun/http'

interface Decision {
  readonly by: string
  readonly isApproved: boolean
}

const mails: string[] = []
const expense = durable('expense', function* ({ cents, waitMs }: { cents: number; waitMs: number }) {
  yield* step('ask', async () => void mails.push(`${cents} cents: yes or no?`))
  let decision = yield* signal<Decision>('decided', { timeoutMs: waitMs })
  if (decision === undefined) {
    yield* step('remind', async () => void mails.push(`${cents} cents: still waiting`))
    decision = yield* signal<Decision>('decided', { timeoutMs: waitMs })
  }
  if (decision?.isApproved !== true)
    return `refused${decision === undefined ? ', as nobody has decided' : ''}`
  const { by } = decision
  yield* step(
    'pay',
    async ({ key }) => void mails.push(`paid ${cents} by ${by}, ${key === '' ? '?' : 'once'}`),
  )
  return `approved by ${by}`
})

const fleet = await connect('memory:expenses') // or sqlite:work.db
const work = await runs(fleet, { definitions: [expense], idleMs: 10 })

const app = createApp({
  routes: {
    '/expenses/:key/decision': {
      POST: async (request) => {
        await work.get('expense', request.params.key).signal('decided', await request.json())
        return { status: 'kept' }
      },
    },
    '/expenses': async () => (await work.list('expense')).items,
  },
})

const day = 86_400_000
const approved = await work.start('expense', { cents: 1200, waitMs: 3 * day }, { key: 'lunch' })
while ((await approved.state()).status !== 'waiting') await new Promise(setImmediate)
const body = JSON.stringify({ by: 'Ann', isApproved: true })
const headers = { 'content-type': 'application/json' }
const response = await app.inject('/expenses/lunch/decision', { method: 'POST', body, headers })
assert.equal(response.status, 200)
console.log('lunch:', await approved.result())

const forgotten = await work.start('expense', { cents: 99_000, waitMs: 30 }, { key: 'boat' })
console.log('boat:', await forgotten.result())
assert.deepEqual(
  mails.filter((mail) => mail.startsWith('paid')),
  ['paid 1200 by Ann, once'],
)
const list = (await (await app.inject('/expenses')).json()) as { status: string }[]
assert.deepEqual(
  list.map(({ status }) => status),
  ['done', 'done'],
)

await work.close()
await fleet.close()
