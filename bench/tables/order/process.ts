/**
 * The process of table `order`: one worker behind whose task calls wait, then one call that is to go before.
 *
 * Where a call begins is counted and not only timed: each task of the crowd adds one to a shared counter, and
 * the call answers with what it has reached. An answer of the crowd that is lost or wrong ends the run.
 */
import { type OrderOptions, zone } from 'corespun/zone'
import { checkAnswer } from '../../harness/errors.ts'
import { serveOrders } from '../../harness/orders.ts'

/** Who waits, and who is to go before. */
export interface Behind {
  readonly what: 'behind'
  readonly waiting: number
  readonly taskUs: number
  readonly crowd: OrderOptions
  readonly single: OrderOptions
  readonly samples: number
}

/** What an empty call costs, in bursts. */
export interface Cost {
  readonly what: 'cost'
  readonly calls: number
  /** The options of each call in turn; empty: `run` without any. */
  readonly options: readonly OrderOptions[]
}

/** Shared words: the crowd's tasks so far; 1 when they are to end at once; the gate. */
const WORDS = { begun: 0, over: 1, held: 2, opened: 3 }

serveOrders((order: Behind | Cost) => (order.what === 'behind' ? behind(order) : cost(order)))

/** What each single call waited for: tasks of the crowd, µs. */
async function behind({ waiting, taskUs, crowd, single, samples }: Behind): Promise<number[][]> {
  const own = zone.create('order', { workers: 1, tasksMax: waiting + 10, queueBytesMax: 2 ** 36 })
  const words = new Int32Array(new SharedArrayBuffer(16))
  const held = own.run(hold, words)
  Atomics.wait(words, WORDS.held, 0)
  const view = own.with(crowd)
  let sum = 0
  const calls = Array.from({ length: waiting }, () =>
    view.run(spin, words, taskUs).then((count) => (sum += count)),
  )
  check('the crowd that waits', own.stats().waiting, waiting)
  const first = own.with(single)
  // Not measured: it is compiled.
  const warm = first.run(begun, words, 0, 0n)
  Atomics.store(words, WORDS.opened, 1)
  Atomics.notify(words, WORDS.opened)
  await Promise.all([held, warm])
  const found: number[][] = []
  while (found.length < samples) {
    Atomics.wait(words, 0, Atomics.load(words, WORDS.begun), 1000)
    found.push(await first.run(begun, words, Atomics.load(words, WORDS.begun), process.hrtime.bigint()))
  }
  Atomics.store(words, WORDS.over, 1)
  await Promise.all(calls)
  check('the calls of the crowd', sum, waiting)
  await own.close()
  return found
}

function hold(words: Int32Array): void {
  Atomics.store(words, 2, 1)
  Atomics.notify(words, 2)
  Atomics.wait(words, 3, 0)
}

function spin(words: Int32Array, us: number): number {
  Atomics.add(words, 0, 1)
  Atomics.notify(words, 0)
  const end = performance.now() + us / 1000
  while (Atomics.load(words, 1) === 0 && performance.now() < end);
  return 1
}

function begun(words: Int32Array, before: number, at: bigint): number[] {
  return [Atomics.load(words, 0) - before, Number(process.hrtime.bigint() - at) / 1000]
}

function check(work: string, got: number, expected: number): void {
  checkAnswer({ contender: 'corespun', work, got, expected })
}

/** CPU and time of a call, µs. */
async function cost({ calls, options }: Cost): Promise<{ us: number; cpuUs: number }> {
  const own = zone.create('order', { workers: 1, tasksMax: calls + 10 })
  const views = options.map((each) => (Object.keys(each).length === 0 ? own : own.with(each)))
  const burst = async (count: number): Promise<void> => {
    const answers: Promise<number>[] = []
    for (let call = 0; call < count; call += 1)
      answers.push(views[call % views.length].run((n: number) => n, call))
    let sum = 0
    for (const answer of answers) sum += await answer
    check('a burst of calls', sum, (count * (count - 1)) / 2)
  }
  await burst(calls)
  const [begunMs, cpu] = [performance.now(), process.cpuUsage()]
  await burst(calls)
  const { user, system } = process.cpuUsage(cpu)
  const us = ((performance.now() - begunMs) * 1000) / calls
  await own.close()
  return { us, cpuUs: (user + system) / calls }
}
