/**
 * Numbers that follow from a seed, and which seeds a run of tests plays.
 *
 * One generator for all that is simulated: fibers, the network of fleets, and `corespun/test`. Where locks
 * and channels wait, they ask here whether the code is of a seeded run; outside of a check that is one load.
 */

/** A task of a seeded run, as those who wait see it. */
export interface Seeded {
  /** Resolves when the task is chosen: others may run before. */
  step(what: string): Promise<void>
  /** Let `run` be called when the task is chosen. */
  deliver(what: string, run: () => void): void
  /**
   * Call `run` if the task dies; what is returned forgets that.
   * @param waitsFor What it waits for until then, as a report of a deadlock names it.
   */
  whenDead(run: () => void, waitsFor?: string): () => void
  /** Names the process that it is, or is a part of; empty for that of the first task. */
  readonly process: string
  /** A store that its code has created ends with the run, and has the entries of a file of the run. */
  created(store: object, file: string | undefined): void
}

/** One object, so that compiled code has its address as a constant. */
export const effects: {
  /** The task whose code is running; absent while no check runs. */
  seeded: (() => Seeded | undefined) | undefined
} = { seeded: undefined }

/** The first and the last that a test plays. */
export interface SeedRange {
  readonly first: number
  readonly last: number
}

/**
 * 1 to `count`, or as many as CORESPUN_SEEDS names; CORESPUN_SEED names one alone. Not a list: a billion is
 * allowed.
 * @param wrong The error for what a variable must not be.
 */
export function seedRange(
  count: number,
  wrong = (name: string, expected: string, received: string): Error =>
    new TypeError(`${name} must be ${expected}, received ${received}`),
): SeedRange {
  const { CORESPUN_SEED: one, CORESPUN_SEEDS: most = String(count) } = process.env
  for (const [name, text = '1'] of Object.entries({ CORESPUN_SEED: one, CORESPUN_SEEDS: most }))
    if (!/^[1-9]\d{0,8}$/.test(text)) throw wrong(name, 'a number from 1 to 999,999,999', text)
  return one === undefined ? { first: 1, last: Number(most) } : { first: Number(one), last: Number(one) }
}

/** The list of a {@link seedRange}, for suites. */
export function seeds(count: number): number[] {
  const { first, last } = seedRange(count)
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}

/** Numbers from 0 to 1 that follow from a seed (mulberry32). */
export function generator(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * Random bytes as a text. The function of Node is looked up at each call: a check replaces it, and who has
 * taken it before, as the bundle does for an import, has numbers that no seed decides.
 */
export function randomText(byteCount: number): string {
  return process.getBuiltinModule('node:crypto').randomBytes(byteCount).toString('base64url')
}

/** The UUID of 32 hexadecimal digits, two of which become the version and the variant. */
export function uuidText(hex: string, version: 4 | 8): string {
  const variant = ((Number.parseInt(hex[16], 16) & 3) | 8).toString(16)
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `${version}${hex.slice(13, 16)}`]
  return [...parts, `${variant}${hex.slice(17, 20)}`, hex.slice(20)].join('-')
}

/** A random UUID; its function is looked up, too. */
export function randomId(): string {
  return process.getBuiltinModule('node:crypto').randomUUID()
}
