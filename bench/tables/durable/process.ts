/**
 * A process of table `durable`: runs in a file, or bare transactions on node:sqlite, as its first word asks.
 *
 * `process.js <what> <address> <count>`: the figures are printed as JSON. Every run's value is checked.
 */
import { statSync } from 'node:fs'
import { durable, pause, runs, step } from 'corespun/durable'
import { type Fleet, connect } from 'corespun/fleet'
import { checkAnswer } from '../../harness/errors.ts'

/** What a process measures. */
export type Measured = Readonly<Record<string, number>>

const GROUP = 64
const WORK = { contender: 'corespun', work: 'runs' }
/** As many bytes as the record of a step that returns a number has. */
const RECORD = Buffer.alloc(160, 1)
const DAY_MS = 86_400_000

const timesMs: number[] = []
/** Notes when each of its steps begins. */
const counted = durable('counted', function* (count: number) {
  let sum = 0
  for (let n = 0; n < count; n += 1)
    sum += yield* step('one', (value: number) => (timesMs.push(performance.now()), value), [1])
  return sum
})
const sleeper = durable('sleeper', function* (n: number) {
  yield* pause(DAY_MS)
  return n
})

const WHATS: Readonly<Record<string, (address: string, count: number) => Promise<Measured>>> = {
  step: async (address, count) => {
    const deltas = await stepsOfOne(address, count)
    return { p50Us: medianUs(deltas) }
  },
  long: async (address, count) => {
    const deltas = await stepsOfOne(address, count)
    const part = Math.floor(deltas.length / 10)
    const mean = (some: readonly number[]): number => some.reduce((sum, ms) => sum + ms, 0) / some.length
    return { firstUs: mean(deltas.slice(0, part)) * 1000, lastUs: mean(deltas.slice(-part)) * 1000 }
  },
  grouped: (address, count) =>
    onFleet(address, async (fleet) => {
      const work = await runs(fleet, { definitions: [counted] })
      const begunMs = performance.now()
      const each = Math.ceil(count / GROUP)
      const started = await Promise.all(Array.from({ length: GROUP }, () => work.start('counted', each)))
      for (const run of started) checkAnswer({ ...WORK, got: await run.result(), expected: each })
      const perSecond = (each * GROUP * 1000) / (performance.now() - begunMs)
      await work.close()
      return { perSecond }
    }),
  commits: async (address, count) => bare(address, count, 1),
  transactions: async (address, count) => bare(address, count, GROUP),
  'one-journal': async (address, count) => bare(address, count, GROUP, 1),
  fill: (address, count) =>
    onFleet(address, async (fleet) => {
      const work = await runs(fleet, { definitions: [sleeper], idleMs: 0, runsMax: 1024 })
      for (let n = 0; n < count; n += GROUP)
        await Promise.all(
          Array.from({ length: Math.min(GROUP, count - n) }, (_, index) =>
            work.start('sleeper', n + index, { key: `sleeper ${n + index}` }),
          ),
        )
      // Until the last one waits outside of memory.
      for (;;) {
        let waiting = 0
        let after: string | undefined
        do {
          const page = await work.list('sleeper', { itemsMax: 1000, ...(after !== undefined && { after }) })
          waiting += page.items.filter(({ status }) => status === 'waiting').length
          after = page.next
        } while (after !== undefined)
        if (waiting === count) break
        await new Promise((resolve) => setTimeout(resolve, 200))
      }
      await work.close()
      return { fileBytes: fileBytes(address) / count }
    }),
  wake: (address, count) =>
    onFleet(address, async (fleet) => {
      const before = heapBytes()
      const begunMs = performance.now()
      const work = await runs(fleet, { definitions: [sleeper] })
      const one = await work.start('sleeper', 1, { key: 'sleeper 1' })
      checkAnswer({ ...WORK, got: (await one.state()).status, expected: 'waiting' })
      const startMs = performance.now() - begunMs
      await new Promise((resolve) => setTimeout(resolve, 1000))
      const bytesEach = Math.max(0, heapBytes() - before) / count
      await work.close()
      return { startMs, bytesEach }
    }),
}

async function onFleet(address: string, work: (fleet: Fleet) => Promise<Measured>): Promise<Measured> {
  const fleet = await connect(address)
  try {
    return await work(fleet)
  } finally {
    await fleet.close()
  }
}

/** The times from the beginning of a step to that of the next one, of one run. */
async function stepsOfOne(address: string, count: number): Promise<number[]> {
  await onFleet(address, async (fleet) => {
    const work = await runs(fleet, { definitions: [counted] })
    const run = await work.start('counted', count)
    checkAnswer({ ...WORK, got: await run.result(), expected: count })
    await work.close()
    return {}
  })
  return timesMs.slice(1).map((ms, index) => ms - timesMs[index])
}

/**
 * Transactions of some insertions each, synced.
 * @param journals To so many they belong in turn, as records of as many runs do: each is found by its run.
 */
function bare(address: string, count: number, insertions: number, journals = insertions): Measured {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const db = new DatabaseSync(address.slice('sqlite:'.length))
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  db.exec('CREATE TABLE kept (store TEXT, key TEXT, bytes BLOB, PRIMARY KEY (store, key)) WITHOUT ROWID')
  const insert = db.prepare('INSERT INTO kept VALUES (?, ?, ?)')
  const ids = Array.from({ length: journals }, () => crypto.randomUUID())
  const deltas: number[] = []
  const begunMs = performance.now()
  for (let n = 0; n < count; n += insertions) {
    const ms = performance.now()
    db.exec('BEGIN IMMEDIATE')
    for (let at = n; at < n + insertions; at += 1)
      insert.run('steps', `${ids[at % journals]}.${Math.floor(at / journals)}`, RECORD)
    db.exec('COMMIT')
    deltas.push(performance.now() - ms)
  }
  const perSecond = (deltas.length * insertions * 1000) / (performance.now() - begunMs)
  db.close()
  return { p50Us: medianUs(deltas), perSecond }
}

const medianUs = (ms: readonly number[]): number =>
  ms.toSorted((a, b) => a - b)[Math.floor(ms.length / 2)] * 1000
const fileBytes = (address: string): number => statSync(address.slice('sqlite:'.length)).size

function heapBytes(): number {
  const { gc } = globalThis as { gc?: () => void }
  for (let n = 0; n < 3; n += 1) gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const [what, address, count] = process.argv.slice(2)
process.stdout.write(JSON.stringify(await WHATS[what](address, Number(count))))
