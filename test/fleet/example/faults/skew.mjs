/**
 * Clocks that are a minute ahead or behind, or step between both, at hosts, gateway and callers; the servers'
 * are right, so that each differs from theirs. Servers and hosts are killed as well.
 *
 * The wall clock of a nats-server cannot be set: namespaces of time have no wall clock, and a static program
 * of Go loads no libfaketime. Servers compare no wall clocks with each other's.
 */
import { inRoot, must } from '../../../../scripts/set-up/index.mjs'
import { kill } from './kill.mjs'

const MINUTE_MS = 60_000
/** Of three hosts and the gateway. */
const CLOCKS = [String(MINUTE_MS), String(-MINUTE_MS), 'steps', String(-MINUTE_MS)]
const wrongClock = (clock) => ({
  CORESPUN_CLOCK: clock,
  NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${new URL('../clock.mjs', import.meta.url).href}`,
})

export const skew = {
  ...kill,
  times: 0,
  // Longer than any pause of a busy machine, and shorter than the clocks differ.
  how: { module: inRoot('test', 'fleet', 'example', 'slow.mjs'), lease: '30s' },
  env: (at) => wrongClock(CLOCKS[at]),

  /** What depends on time, as callers with wrong clocks see it. @throws {Stop} */
  async check({ env, folder }) {
    const path = inRoot('test', 'fleet', 'example', 'clocks.mjs')
    await Promise.all(
      CLOCKS.slice(0, 3).map((clock, at) =>
        must(`A caller whose clock is ${clock}`, process.execPath, [path, folder, `caller-${at}`], {
          env: { ...process.env, ...env, ...wrongClock(clock) },
        }),
      ),
    )
    console.log('deadlines, delays, schedules, locks and ages are right for callers with wrong clocks')
  },
}
