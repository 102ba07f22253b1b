/**
 * A process of table `main`: a worker calls the main thread, one call after the other.
 *
 * By `zone.main`, or by a message each way, which is what a program without it writes.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { zone } from 'corespun/zone'
import { checkAnswer } from '../../harness/errors.ts'
import { serveOrders } from '../../harness/orders.ts'

/** So many calls, one after the other. */
export interface Calls {
  readonly calls: number
}

/** The middle and the 99th percentile of a call, µs; CPU of the process for one. */
export interface CallsFound {
  readonly p50: number
  readonly p99: number
  readonly cpuUs: number
}

const contender = process.argv[2]
const own = contender === 'corespun' ? zone.create('callers', { workers: 1 }) : undefined
const worker = own === undefined ? await messaging() : undefined

serveOrders(async ({ calls }: Calls): Promise<CallsFound> => {
  const cpu = process.cpuUsage()
  const [sum, us] = own === undefined ? await ordered(calls) : await own.run(called, calls)
  const { user, system } = process.cpuUsage(cpu)
  checkAnswer({ contender, work: 'the sum of the answers', got: sum, expected: (calls * (calls + 1)) / 2 })
  us.sort((a, b) => a - b)
  const at = (share: number): number => us[Math.floor(share * (calls - 1))]
  return { p50: at(0.5), p99: at(0.99), cpuUs: (user + system) / calls }
})

/** Runs in the worker. */
async function called(calls: number): Promise<[number, Float64Array]> {
  const { zone: here } = await import('corespun/zone')
  const us = new Float64Array(calls)
  let sum = 0
  for (let call = 0; call < calls; call++) {
    const start = performance.now()
    sum += await here.main.run((n: number) => n + 1, call)
    us[call] = (performance.now() - start) * 1000
  }
  return [sum, us]
}

async function messaging(): Promise<Worker> {
  const code = `const { parentPort: port } = require('node:worker_threads')
    let answered = () => {}
    port.on('message', (message) => {
      if (message.calls !== undefined) void run(message.calls)
      else answered(message)
    })
    async function run(calls) {
      const us = new Float64Array(calls)
      let sum = 0
      for (let call = 0; call < calls; call++) {
        const start = performance.now()
        port.postMessage({ id: call, n: call })
        const { answer } = await new Promise((resolve) => (answered = resolve))
        sum += answer
        us[call] = (performance.now() - start) * 1000
      }
      port.postMessage({ sum, us })
    }`
  const started = new Worker(code, { eval: true })
  await once(started, 'online')
  return started
}

function ordered(calls: number): Promise<[number, Float64Array]> {
  const to = worker as Worker
  return new Promise((resolve) => {
    const receive = (message: { id: number; n: number } | { sum: number; us: Float64Array }): void => {
      if ('n' in message) return to.postMessage({ id: message.id, answer: message.n + 1 })
      to.off('message', receive)
      resolve([message.sum, message.us])
    }
    to.on('message', receive)
    to.postMessage({ calls })
  })
}
