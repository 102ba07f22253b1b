/**
 * One method from its first run on, in a process of its own: what a run costs cold and warm, and in all.
 *
 * First cold, then again a new arrow after others have warmed up Corespun itself. With the word `code` an
 * arrow is compiled before it is first run, and that time counts. With `closures` it
 * never is: the process is started so that generating code is forbidden, which is how the first tier stays.
 */
import { lift } from 'corespun/arrow'
import { METHODS, type Method, surroundings } from './methods.ts'

/** Runs are reported at powers of two up to here. */
const RUNS_LOG_MAX = 20

/** Arrows of another kind that are run before, so that Corespun's own code is warm. */
const OTHERS = 200

/** What a process found out. */
export interface Tier {
  /** ns of making and running the process's first arrow once. */
  readonly coldNs: number
  /**
   * Of a new arrow in the process that is warm now: ns from before it was made until after 2 ** index runs.
   */
  readonly totalNs: readonly number[]
  /** What all results added up to: the same whichever way they were computed. */
  readonly sum: number
}

/** Runs after which `code` has cost less in all than `closures`, and stays so; a power of two. */
export function paysAfter(code: Tier, closures: Tier): number {
  const at = code.totalNs.findIndex((_, index) =>
    code.totalNs.slice(index).every((ns, later) => ns <= closures.totalNs[index + later]),
  )
  return at < 0 ? Infinity : 2 ** at
}

/** ns of a run when all that warms up is warm. */
export function warmNs({ totalNs }: Tier): number {
  const [half, whole] = totalNs.slice(-2) as [number, number]
  return (whole - half) / 2 ** (RUNS_LOG_MAX - 1)
}

const [label, way] = process.argv.slice(2)
if (way === 'code' || way === 'closures') {
  const method = METHODS.find((one) => one.label === label)!
  process.stdout.write(JSON.stringify(timed(await startOf(method), way === 'code')))
}

/** A method's first arrow. */
interface Start {
  readonly make: (i: number, j: number) => { run(input: unknown): never; compiled(): unknown }
  readonly use: (result: never) => number
  readonly inputs: readonly unknown[]
}

/** From text as in methods.ts, but as a module: making functions from text may be forbidden here. */
async function startOf({ make, use, inputs }: Method): Promise<Start> {
  const text = `export default ({ ${Object.keys(surroundings).join(', ')} }) =>
    ({ make: (i, j) => ${make}, use: (v) => ${use}, inputs: ${inputs} })`
  const url = `data:text/javascript,${encodeURIComponent(text)}`
  const bound = (await import(url)) as { default: (given: object) => Start }
  return bound.default(surroundings)
}

function timed({ make, use, inputs }: Start, isCompiled: boolean): Tier {
  const made = (): ReturnType<Start['make']> => {
    const arrow = make(0, 7)
    if (isCompiled) arrow.compiled()
    return arrow
  }
  const cold = process.hrtime.bigint()
  let sum = use(made().run(inputs[0]))
  const coldNs = Number(process.hrtime.bigint() - cold)
  warmUp()
  const totalNs: number[] = []
  const begun = process.hrtime.bigint()
  const arrow = made()
  for (let power = 0, count = 0; power <= RUNS_LOG_MAX; power += 1) {
    const last = 2 ** power
    for (; count < last; count += 1) sum = (sum + use(arrow.run(inputs[count & 63]))) | 0
    totalNs.push(Number(process.hrtime.bigint() - begun))
  }
  return { coldNs, totalNs, sum }
}

/** Arrows of other shapes come through all tiers that this process has. */
function warmUp(): void {
  for (let other = 0; other < OTHERS; other += 1) {
    const arrow = lift((x: number) => x + other)
      .map((x) => x * other)
      .tap(() => other)
      .keepInput()
      .map((x) => x - other)
    for (let run = 0; run < OTHERS; run += 1) arrow.run(run)
    arrow.compiled().run(other)
  }
}
