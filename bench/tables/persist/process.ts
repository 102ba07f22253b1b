/**
 * A process of table `persist`: one contender writes, reads, and is opened again.
 *
 * The result is printed as JSON. A file that lacks an acknowledged write ends the process with an error.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkAnswer } from '../../harness/errors.ts'
import { CONTENDERS, type Keeper } from './contenders.ts'

const WRITERS = 64
const KEYS = 64
const PASSES = 15
const READS = 20_000

/** What a process measures; a contender without a file has no writes. */
export type Persisted = Readonly<Record<string, number>>

const [name, entriesText, writesText] = process.argv.slice(2)
const [entries, writes] = [Number(entriesText), Number(writesText)]
const contender = CONTENDERS[name]
// On the disk: a folder in memory syncs nothing.
const folder = mkdtempSync(join(tmpdir(), 'corespun-bench-persist-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))

const expected = new Map<string, unknown>()
const valueOf = (n: number): object => ({
  id: n,
  name: `user ${n}`,
  email: `user${n}@example.org`,
  score: n / 3,
})
const found: Record<string, number> = {}
let keeper = await contender.open(folder)
if (contender.isFile) await timedWrites()
await reads()
if (contender.isFile) await opening()
await keeper.close()
process.stdout.write(JSON.stringify(found))

async function timedWrites(): Promise<void> {
  await timed('one', writes / 16, async (count) => {
    for (let n = 0; n < count; n += 1) await write(`one ${n % KEYS}`, valueOf(n))
  })
  await timed('many', writes, async (count) => {
    const { writeAll } = keeper
    const each = Math.ceil(count / WRITERS)
    const writer = async (index: number): Promise<void> => {
      for (let n = 0; n < each; n += 1) await write(`many ${index}`, valueOf(n * WRITERS + index))
    }
    const indexes = Array.from({ length: WRITERS }, (_, index) => index)
    if (writeAll === undefined) await Promise.all(indexes.map(writer))
    else for (let n = 0; n < each; n += 1) await writeAll(indexes.map((index) => noted(`many ${index}`, n)))
  })
}

function noted(key: string, n: number): readonly [string, unknown] {
  expected.set(key, valueOf(n))
  return [key, valueOf(n)]
}

async function write(key: string, value: unknown): Promise<void> {
  expected.set(key, value)
  await keeper.write(key, value)
}

async function timed(figure: string, count: number, body: (count: number) => Promise<void>): Promise<void> {
  const startedMs = performance.now()
  await body(Math.ceil(count))
  found[figure] = ((performance.now() - startedMs) * 1000) / count
}

async function reads(): Promise<void> {
  for (const [figure, make] of [
    ['objectNs', valueOf],
    ['numberNs', (n: number) => n / 3],
  ] as const) {
    const keys = Array.from({ length: KEYS }, (_, n) => `${figure} ${n}`)
    await Promise.all(keys.map((key, n) => write(key, make(n))))
    found[figure] = nsOfRead(keys)
  }
}

/** CPU time: the machine may be busy. */
function nsOfRead(keys: readonly string[]): number {
  let best = Infinity
  for (let pass = 0; pass < PASSES; pass += 1) {
    const before = process.cpuUsage()
    let none = 0
    for (let read = 0; read < READS; read += 1) if (keeper.get(keys[read % KEYS]) === undefined) none += 1
    const { user, system } = process.cpuUsage(before)
    checkAnswer({ contender: name, work: 'reads that find nothing', got: none, expected: 0 })
    best = Math.min(best, ((user + system) * 1000) / READS)
  }
  return best
}

/** Fill the file, close it, and open it again; then everything that was acknowledged is compared. */
async function opening(): Promise<void> {
  await fill(keeper)
  await keeper.close()
  const startedMs = performance.now()
  keeper = await contender.open(folder)
  keeper.get('entry 0')
  found.openMs = performance.now() - startedMs
  for (const [key, value] of expected) {
    const [got, work] = [keeper.get(key), `a read of ${key} after opening`]
    checkAnswer({ contender: name, work, got: JSON.stringify(got), expected: JSON.stringify(value) })
  }
}

async function fill(into: Keeper): Promise<void> {
  const all = Array.from({ length: entries }, (_, n) => [`entry ${n}`, valueOf(n)] as const)
  for (const [key, value] of all) expected.set(key, value)
  if (into.writeAll !== undefined) await into.writeAll(all)
  else await Promise.all(all.map(([key, value]) => into.write(key, value)))
}
