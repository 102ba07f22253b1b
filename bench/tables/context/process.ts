/**
 * The process of table `context`: bursts of calls to one worker that take one kind of context with them.
 *
 * Each task answers with the sum of its arguments and what it has found; both are checked.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { carry, measureCpu, withTrace, zone } from 'corespun/zone'
import { checkAnswer } from '../../harness/errors.ts'
import { serveOrders } from '../../harness/orders.ts'
import { type Calls, type CallsFound, KINDS, type Kind } from './kinds.ts'

const VALUE = 42
const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const kind = KINDS.find((each) => each === process.argv[2]) ?? 'nothing'
const own = zone.create('context', { workers: 1, tasksMax: 1_000_000 })

/** Leaves what the tasks call in their worker, which imports the package itself. */
async function prepare(kind: Kind): Promise<void> {
  const { carry, currentTask, currentTrace } = await import('corespun/zone')
  const value = kind === 'registered' || kind === 'value' ? carry<number>('value') : undefined
  const finds: Record<Kind, () => number> = {
    nothing: () => 0,
    registered: () => 0,
    storage: () => 0,
    value: () => value?.getStore() ?? Number.NaN,
    trace: () => currentTrace()?.traceparent?.length ?? Number.NaN,
    cpu: () => ((currentTask()?.cpuMs ?? Number.NaN) > 0 ? 1 : Number.NaN),
  }
  ;(globalThis as { find?: () => number }).find = finds[kind]
}

function task(one: number, other: number): number {
  return one + other + (globalThis as unknown as { find: () => number }).find()
}

const FOUND: Record<Kind, number> = {
  nothing: 0,
  registered: 0,
  storage: 0,
  value: VALUE,
  trace: TRACE.length,
  cpu: 1,
}

async function burst(calls: number): Promise<void> {
  const answers: Promise<number>[] = []
  for (let call = 0; call < calls; call += 1) answers.push(own.run(task, call, 1))
  let sum = 0
  for (const answer of answers) sum += await answer
  const expected = (calls * (calls - 1)) / 2 + calls * (1 + FOUND[kind])
  checkAnswer({ contender: 'corespun', work: `calls with ${kind}`, got: sum, expected })
}

/** Runs `body` with what its calls are to take. */
function within<R>(body: () => R): R {
  if (kind === 'storage') return new AsyncLocalStorage<number>().run(VALUE, body)
  if (kind === 'value') return carry<number>('value').run(VALUE, body)
  if (kind === 'trace') return withTrace({ traceparent: TRACE }, body)
  return kind === 'cpu' ? measureCpu(body) : body()
}

if (kind === 'registered') carry('value')
await own.broadcast(prepare, [kind])

serveOrders(async ({ calls }: Calls): Promise<CallsFound> => {
  const [begunMs, cpu] = [performance.now(), process.cpuUsage()]
  await within(() => burst(calls))
  const { user, system } = process.cpuUsage(cpu)
  return { ns: ((performance.now() - begunMs) * 1e6) / calls, cpuNs: ((user + system) * 1000) / calls }
})
