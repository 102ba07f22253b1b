/**
 * Stamps: values that write down when they are saved and when they are loaded, for splitting a call into
 * parts.
 *
 * They use nothing but the transport's public `register`, so what they time is the way every value goes. All
 * times are of the one monotonic clock of the machine, the same in every thread, and lie in memory that both
 * threads share: what travels of a stamp is a number. Even so a stamp costs more than what it times, so a
 * call carries only those of the one part that it is to time, and their price is calibrated apart from any
 * call.
 */
import { encode, register, decode } from 'corespun/transport'
import { summary } from '../harness/stats.ts'

/** Where each moment lies. A stamp in front is looked at when it is loaded, one behind when it is saved. */
export const Moment = { saved: 0, loaded: 1, entered: 2, left: 3, savedBack: 4, loadedBack: 5 } as const

let moments = new Float64Array(new SharedArrayBuffer(8 * Object.keys(Moment).length))

/** The memory of this thread's stamps from now on. */
export function share(memory: SharedArrayBuffer): void {
  moments = new Float64Array(memory)
}

export class Stamp {
  readonly moment: number

  constructor(moment: number) {
    this.moment = moment
  }
}

const stamps = Object.values(Moment).map((moment) => new Stamp(moment))
/** Precedes the arguments. */
export const front = stamps[Moment.loaded]
/** Follows the arguments. */
export const behind = stamps[Moment.saved]
const frontBack = stamps[Moment.loadedBack]
const behindBack = stamps[Moment.savedBack]

register(Stamp, {
  cid: 'bench.Stamp',
  save: ({ moment }) => {
    if (moment === Moment.saved || moment === Moment.savedBack) moments[moment] = nowNs()
    return moment
  },
  load: (moment) => {
    if (moment === Moment.loaded || moment === Moment.loadedBack) moments[moment as number] = nowNs()
    return stamps[moment]
  },
})

/** Returns the payload; {@link clocked} and the others add stamps of their own. */
export function plain(payload: unknown): unknown {
  return payload
}

/** Payload first, a stamp behind it. */
export function stampedBehind(payload: unknown, _behind: Stamp): unknown {
  return payload
}

/** Between two stamps. */
export function stampedAround(_front: Stamp, payload: unknown, _behind: Stamp): unknown {
  return payload
}

/** A stamp in front; the function itself is timed too. */
export function clocked(_front: Stamp, payload: unknown): unknown {
  moments[Moment.entered] = nowNs()
  const given = payload
  moments[Moment.left] = nowNs()
  return given
}

/** The result with a stamp behind it, from the moment it is there. */
export function behindResult(payload: unknown): unknown {
  const back = [payload, behindBack]
  moments[Moment.left] = nowNs()
  return back
}

/** The result between two stamps. */
export function aroundResult(payload: unknown): unknown {
  return [frontBack, payload, behindBack]
}

/** The result with a stamp in front. */
export function frontResult(payload: unknown): unknown {
  return [frontBack, payload]
}

/** What a stamp adds to writing and to reading, and the clock to a span, nanoseconds. */
export interface Price {
  readonly saveNs: number
  readonly loadNs: number
  readonly clockNs: number
}

/**
 * The price of a stamp beside the payload, against `without` it: arguments are an array anyway, a result is
 * one for its stamp alone. Taken in this thread and through no zone, with it and without it in turn.
 */
export function priceOf(payload: unknown, without: unknown, turns: number): Price {
  const names = ['saveWith', 'save', 'loadWith', 'load', 'clock'] as const
  const spans = Object.fromEntries(names.map((name) => [name, [] as number[]]))
  const take = <Value>(name: (typeof names)[number], body: () => Value): Value => {
    const startNs = nowNs()
    const value = body()
    spans[name].push(nowNs() - startNs)
    return value
  }
  for (let turn = 0; turn < turns; turn += 1) {
    const withStamp = [payload, front]
    const bytes = take('saveWith', () => encode(withStamp, { mode: 'process' }))
    const fewer = take('save', () => encode(without, { mode: 'process' }))
    take('loadWith', () => decode(bytes, { mode: 'process' }))
    take('load', () => decode(fewer, { mode: 'process' }))
    take('clock', () => undefined)
  }
  // The later half: by then all of it is compiled.
  const median = (name: (typeof names)[number]): number => summary(spans[name].slice(turns / 2)).median
  return {
    saveNs: median('saveWith') - median('save'),
    loadNs: median('loadWith') - median('load'),
    clockNs: median('clock'),
  }
}

/** Now, in nanoseconds of the machine's monotonic clock. */
export function nowNs(): number {
  return Number(process.hrtime.bigint())
}
