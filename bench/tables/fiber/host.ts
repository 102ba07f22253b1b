/**
 * The process of one contender of the fiber table: runs slices by order, one at a time.
 *
 * A slice runs one program again and again for so many ms; the sums of its first and its last run are
 * checked.
 */
import { serveOrders } from '../../harness/orders.ts'
import { besidePromises } from './beside-promises.ts'
import { CONTENDERS } from './contenders.ts'
import { forkJoin } from './fork-join.ts'
import { isRight } from './sums.ts'

/** What a process is started with. */
export interface Setting {
  readonly contender: string
  readonly threads: number
  readonly spin: boolean
}

/** An order. `program`: a row of the contender, 'fork+join, ...' or 'beside promises, ...'. */
export interface SliceOrder {
  readonly program: string
  readonly num: number
  readonly fibers: number
  readonly sliceMs: number
  /** By which clock: the wall's, or the CPU time of the process, which others at work do not change. */
  readonly clock: string
}

/** What the process answers at its start; then operations a second for each order. */
export interface Opened {
  readonly programs: readonly string[]
  readonly notes: Readonly<Record<string, string>>
}

const setting = JSON.parse(process.argv[2]) as Setting
const opened = await CONTENDERS[setting.contender](setting)
const costs = { ...(await forkJoin(setting.contender)), ...(await besidePromises(setting.contender)) }
const ready: Opened = {
  programs: [...Object.keys(opened.programs), ...Object.keys(costs)],
  notes: opened.notes,
}
serveOrders(slice, ready)

async function slice({ program, num, fibers, sliceMs, clock }: SliceOrder): Promise<number> {
  const cost = costs[program]
  if (cost !== undefined) return timed(sliceMs, clock, 2000, cost)
  const run = opened.programs[program]
  const check = async (): Promise<void> => {
    const sum = await run(num, fibers)
    if (!isRight(sum, num))
      throw new Error(`${setting.contender}, ${program}: the sum of 0..${num} is ${sum}`)
  }
  await check()
  const perSecond = await timed(sliceMs, clock, 64, async (times) => {
    for (let turn = 0; turn < times; turn += 1) {
      const made = run(num, fibers)
      if ('then' in made) await made
    }
  })
  await check()
  return perSecond
}

/**
 * How many times a second: `body` is given a number of times, and returns how often it did it if that
 * differs. A fifth of the time warms up.
 */
async function timed(
  sliceMs: number,
  clock: string,
  times: number,
  body: (times: number) => Promise<number | void>,
): Promise<number> {
  const nowMs = clock === 'cpu' ? cpuMs : (): number => performance.now()
  const run = async (ms: number): Promise<number> => {
    const begun = nowMs()
    for (let count = 0; ;) {
      count += (await body(times)) ?? times
      const passedMs = nowMs() - begun
      if (passedMs >= ms) return (count / passedMs) * 1000
    }
  }
  await run(sliceMs / 5)
  return run(sliceMs)
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
