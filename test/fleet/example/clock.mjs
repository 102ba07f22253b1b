/**
 * A wall clock that is wrong, for the process that loads this by `--import`, and for its workers.
 *
 * CORESPUN_CLOCK is how much it is ahead in ms, or `steps`: a minute ahead and a minute behind in turn, every
 * two seconds, as by a machine that is set anew and anew. `performance.now()` and timers stay as they are.
 */
const { CORESPUN_CLOCK: clock = '0' } = process.env
const MINUTE_MS = 60_000
const STEP_MS = 2000

const RightDate = Date
const isAhead = () => Math.floor(performance.now() / STEP_MS) % 2 === 0
const aheadMs = clock === 'steps' ? () => (isAhead() ? MINUTE_MS : -MINUTE_MS) : () => Number(clock)
const now = () => RightDate.now() + aheadMs()

globalThis.Date = new Proxy(RightDate, {
  get: (target, key) => (key === 'now' ? now : Reflect.get(target, key)),
  apply: () => new Date().toString(),
  construct: (target, parts, made) => Reflect.construct(target, parts.length === 0 ? [now()] : parts, made),
})
