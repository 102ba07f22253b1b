/**
 * Stamps: values that write down when they are saved and when they are loaded, for splitting a call into
 * parts.
 *
 * They use nothing but the transport's public `register`, so what they time is the way every value goes. All
 * times are of the one monotonic clock of the machine, the same in every thread.
 */
import { register } from 'skein/transport'

/** A value whose payload is the moment it was saved. */
export class Stamp {
  readonly savedAtNs: number
  readonly loadedAtNs: number

  /**
   * @param savedAtNs When the far side wrote it; 0 on the near side.
   * @param loadedAtNs When this side read it.
   */
  constructor(savedAtNs = 0, loadedAtNs = 0) {
    this.savedAtNs = savedAtNs
    this.loadedAtNs = loadedAtNs
  }
}

register(Stamp, {
  cid: 'bench.Stamp',
  save: () => nowNs(),
  load: (savedAtNs) => new Stamp(savedAtNs as number, nowNs()),
})

/** What comes back from {@link pass}. */
export interface Passed {
  readonly first: Stamp
  readonly payload: unknown
  readonly argumentsNs: readonly number[]
  readonly last: Stamp
}

/** The work: takes a payload between two stamps and gives it back between two others. */
export function pass(first: Stamp, payload: unknown, last: Stamp): Passed {
  const enteredNs = nowNs()
  const argumentsNs = [last.savedAtNs, first.loadedAtNs, enteredNs, nowNs()]
  return { first: new Stamp(), payload, argumentsNs, last: new Stamp() }
}

/** The payload without stamps, for the price of the stamps. */
export function passPlain(payload: unknown): unknown {
  return payload
}

/** Now, in nanoseconds of the machine's monotonic clock. */
export function nowNs(): number {
  return Number(process.hrtime.bigint())
}
