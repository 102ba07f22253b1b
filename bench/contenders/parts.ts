/**
 * A program of its own: splits calls into a zone of Corespun into the seed's six parts.
 *
 * Each part is timed in calls of its own, so that nothing makes the parts add up to the whole but that they
 * do. Argument: JSON of {@link PartsOrder}; prints JSON of {@link PartsResult}.
 */
import { checkAnswer } from '../harness/errors.ts'
import { summary } from '../harness/stats.ts'
import { behind, front, Moment, nowNs, type Price, priceOf, share } from './stamps.ts'

/** How often, with what. */
export interface PartsOrder {
  readonly calls: number
  readonly bytes: number
  readonly spin: boolean
}

/** Medians over the calls, microseconds. */
export interface PartsResult {
  /** Less the price of the stamps that timed them. */
  readonly partsUs: readonly number[]
  readonly functionUs: number
  /** The same call without stamps. */
  readonly plainUs: number
  /** What stamps added to the parts, calibrated apart from any call, and taken off them. */
  readonly stampsUs: number
}

/** One kind of call: which function, with what, and the spans that it times, from moment to moment. */
interface Kind {
  readonly name: string
  readonly args: readonly unknown[]
  readonly spans: readonly (readonly [from: number, to: number])[]
}

/** Moments of the caller, behind those of the stamps. */
const [START, END] = [6, 7]

const order = JSON.parse(process.argv[2]) as PartsOrder
console.log(JSON.stringify(await measured(order)))
process.exit(0)

function kindsOf(payload: unknown): Kind[] {
  const { saved, loaded, entered, left, savedBack, loadedBack } = Moment
  return [
    { name: 'stampedBehind', args: [payload, behind], spans: [[START, saved]] },
    { name: 'stampedAround', args: [front, payload, behind], spans: [[saved, loaded]] },
    {
      name: 'clocked',
      args: [front, payload],
      spans: [
        [loaded, entered],
        [entered, left],
      ],
    },
    { name: 'behindResult', args: [payload], spans: [[left, savedBack]] },
    { name: 'aroundResult', args: [payload], spans: [[savedBack, loadedBack]] },
    { name: 'frontResult', args: [payload], spans: [[loadedBack, END]] },
    { name: 'plain', args: [payload], spans: [[START, END]] },
  ]
}

async function measured({ calls, bytes, spin }: PartsOrder): Promise<PartsResult> {
  const { zone } = await import('corespun')
  const bench = zone.create('parts', { workers: 1, ...(spin ? {} : { spinUs: 0 }) })
  const module = new URL('./stamps.js', import.meta.url)
  const payload = { text: 'x'.repeat(bytes), a: 1, b: true }
  const memory = new SharedArrayBuffer(8 * (END + 1))
  const moments = new Float64Array(memory)
  share(memory)
  await bench.execute(module, 'share', [memory]) // loads the module, which registers the stamps there
  const kinds = kindsOf(payload)
  const spans = kinds.map((kind) => kind.spans.map((): number[] => []))
  for (let call = -calls; call < calls; call += 1) {
    for (const [at, { name, args, spans: chosen }] of kinds.entries()) {
      moments[START] = nowNs()
      const given = (await bench.execute(module, name, args)).value
      moments[END] = nowNs()
      if (call === 0) check(name, given, payload)
      if (call < 0) continue // the first half warms up
      for (const [index, [from, to]] of chosen.entries()) spans[at][index].push(moments[to] - moments[from])
    }
  }
  await bench.close()
  return resultOf(
    spans.flat().map((each) => summary(each).median),
    priceOf(payload, [payload], 2 * calls),
    priceOf(payload, payload, 2 * calls),
  )
}

/** Medians of the six parts, the function behind the third, and the whole, less the price of the stamps. */
function resultOf(medians: readonly number[], there: Price, back: Price): PartsResult {
  const { clockNs } = there
  const prices = [there.saveNs, clockNs, there.loadNs, clockNs, back.saveNs, clockNs, back.loadNs, clockNs]
  const us = medians.map((median, index) => (median - prices[index]) / 1000)
  return {
    partsUs: [0, 1, 2, 4, 5, 6].map((index) => us[index]),
    functionUs: us[3],
    plainUs: us[7],
    stampsUs: prices.slice(0, -1).reduce((sum, price) => sum + price, 0) / 1000,
  }
}

/** Apart from stamps, every kind of call returns the payload. */
function check(name: string, given: unknown, payload: unknown): void {
  const got = Array.isArray(given) ? given.find((part) => typeof part === 'object' && 'text' in part) : given
  checkAnswer({ contender: 'corespun', work: name, got, expected: payload })
}
