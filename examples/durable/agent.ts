/**
 * An agent with tools as a durable run: after a crash no reply of the model is paid for again, and browsers
 * that follow it reconnect.
 *
 * `node examples/durable/agent.ts` plays the crash between two replies, and reads the stream of events as a
 * browser would. The model here is a script: call yours instead.
 */
import assert from 'node:assert/strict'
import { durable, expose, runs, step } from 'corespun/durable'
import { Schedule, forEach } from 'corespun/fiber'
import { connect } from 'corespun/fleet'
import { createApp, events } from 'corespun/http'

interface Call {
  readonly tool: keyof typeof tools
  readonly of: string
}
interface Message {
  readonly role: 'user' | 'model' | 'tool'
  readonly text: string
  readonly calls?: readonly Call[]
}

const TURNS_MAX = 20
let replies = 0
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function model(messages: readonly Message[]): Promise<Message> {
  replies++
  await pause(20)
  if (messages.length === 1)
    return {
      role: 'model',
      text: 'I look it up.',
      calls: ['Oslo', 'Rome'].map((of): Call => ({ tool: 'weather', of })),
    }
  const found = messages.filter(({ role }) => role === 'tool').map(({ text }) => text)
  if (found.length === 2)
    return { role: 'model', text: 'I compare.', calls: [{ tool: 'warmest', of: found.join() }] }
  return { role: 'model', text: `${found.at(-1)} is warmer.` }
}

const tools = {
  weather: async (city: string) => `${city} ${city.length * 5}°${city === 'Rome' ? '+' : ''}`,
  warmest: async (list: string) =>
    list
      .split(',')
      .find((one) => one.endsWith('+'))
      ?.split(' ')[0] ?? 'neither',
}

const agent = durable('agent', function* (question: string) {
  const messages: Message[] = [{ role: 'user', text: question }]
  yield* expose(() => messages)
  for (let turn = 0; turn < TURNS_MAX; turn++) {
    const reply = yield* step('model', model, [messages], {
      retry: Schedule.exponential(200).and(Schedule.recurs(5)),
      timeoutMs: 60_000,
    })
    messages.push(reply)
    if (reply.calls === undefined) return reply.text
    const call = ({ tool, of }: Call) => step(`call ${tool}`, (what: string) => tools[tool](what), [of])
    for (const text of yield* forEach(reply.calls, call, { concurrency: 4 }))
      messages.push({ role: 'tool', text })
  }
  throw new Error(`no reply after ${TURNS_MAX} turns`)
})

const address = process.argv[2] ?? 'memory:agents'
const fleet = await connect(address)
const caller = await runs(fleet, { definitions: [agent], runsMax: 0 })
const run = await caller.start('agent', 'Which is warmer, Oslo or Rome?', { key: 'question 1' })

// GET /runs/1/events, for EventSource: whoever reconnects has the newest first.
const app = createApp({
  routes: { '/runs/1/events': () => events((signal) => run.progress<Message[]>({ signal })) },
})
const stream = app.inject('/runs/1/events').then((response) => response.text())

const first = await connect(address)
await runs(first, { definitions: [agent], leaseMs: 200 })
while (replies < 2) await pause(5)
await first.close() // it crashes while the second reply is computed

const second = await connect(address)
const workers = await runs(second, { definitions: [agent], leaseMs: 200 })
console.log(await run.result())
assert.equal(replies, 4) // one of four was not recorded
assert.match(await stream, /Rome is warmer/)

await workers.close()
await second.close()
await caller.close()
await fleet.close()
