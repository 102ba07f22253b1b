/**
 * A program of its own: splits calls into a zone of Skein into the seed's six parts.
 *
 * Argument: JSON of {@link PartsOrder}; prints JSON of {@link PartsResult}.
 */
import { checkAnswer } from '../harness/errors.ts'
import { summary } from '../harness/stats.ts'
import { nowNs, type Passed, Stamp } from './stamps.ts'

/** How often, with what. */
export interface PartsOrder {
  readonly calls: number
  readonly bytes: number
  readonly spin: boolean
}

/** Medians over the calls, microseconds. */
export interface PartsResult {
  readonly partsUs: readonly number[]
  readonly functionUs: number
  readonly wholeUs: number
  /** The same call without stamps. */
  readonly plainUs: number
}

const order = JSON.parse(process.argv[2]!) as PartsOrder
console.log(JSON.stringify(await measured(order)))
process.exit(0)

async function measured({ calls, bytes, spin }: PartsOrder): Promise<PartsResult> {
  const { zone } = await import('skein')
  const bench = zone.create('parts', {
    workers: 1,
    ...(spin ? {} : { spinUs: 0 }),
  })
  const module = new URL('./stamps.js', import.meta.url)
  const payload = { text: 'x'.repeat(bytes), a: 1, b: true }
  await bench.execute(module, 'passPlain', [payload]) // loads the module, which registers the stamps there
  const split: number[][] = []
  const plain: number[] = []
  for (let call = -calls; call < calls; call += 1) {
    const times = await stamped(
      () => bench.execute(module, 'pass', [new Stamp(), payload, new Stamp()]),
      payload,
    )
    const start = nowNs()
    const given = (await bench.execute(module, 'passPlain', [payload])).value
    const end = nowNs()
    if (call === 0)
      checkAnswer({
        contender: 'skein',
        work: 'pass',
        got: given,
        expected: payload,
      })
    if (call < 0) continue // the first half warms up
    split.push(times)
    plain.push(end - start)
  }
  await bench.close()
  const column = (at: number): number => summary(split.map((times) => times[at]!)).median / 1000
  return {
    partsUs: [0, 1, 2, 4, 5, 6].map(column),
    functionUs: column(3),
    wholeUs: summary(split.map((times) => times.reduce((sum, one) => sum + one, 0))).median / 1000,
    plainUs: summary(plain).median / 1000,
  }
}

/** The seven spans of one call: six parts and, fourth, the function itself. */
async function stamped(call: () => Promise<{ value: unknown }>, payload: unknown): Promise<number[]> {
  const startNs = nowNs()
  const result = await call()
  const passed = result.value as Passed
  const endNs = nowNs()
  const [savedNs, loadedNs, enteredNs, leftNs] = passed.argumentsNs as [number, number, number, number]
  if ((passed.payload as { a: number }).a !== (payload as { a: number }).a) {
    checkAnswer({
      contender: 'skein',
      work: 'pass',
      got: passed.payload,
      expected: payload,
    })
  }
  const moments = [
    startNs,
    savedNs,
    loadedNs,
    enteredNs,
    leftNs,
    passed.last.savedAtNs,
    passed.first.loadedAtNs,
    endNs,
  ]
  return moments.slice(1).map((moment, index) => moment - moments[index]!)
}
