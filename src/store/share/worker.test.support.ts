/**
 * A thread of the tests of shared values: reads the newest version until a flag ends it.
 *
 * Each version has its number in every record, so a mixture of two versions shows.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { store } from '../index.ts'
import type { SharedList } from './share.ts'

/** A record of a version. */
export interface Row {
  readonly version: number
  readonly index: number
  readonly name: string
  readonly parts: readonly number[]
}

/** What a thread receives. */
export interface Work {
  readonly id: string
  /** Not 0: stop. Then the number of threads that have read a version. */
  readonly flags: SharedArrayBuffer
  /** How many versions it keeps and reads again. */
  readonly keeps: number
}

/** What a thread reports. */
export interface Report {
  readonly reads: number
  readonly newest: number
  readonly wrong: string | undefined
}

/** The first row of a version that does not belong to it. */
export function wrongIn(list: SharedList<Row>, version: number): string | undefined {
  let index = 0
  for (const row of list) {
    const { parts } = row
    const isRight =
      row.version === version &&
      row.index === index &&
      row.name === `row ${index} of ${version}` &&
      parts.length === index % 3 &&
      parts.every((part) => part === version)
    if (!isRight) return `row ${index} of version ${version}: ${JSON.stringify(row)}`
    index++
  }
  return index === list.length ? undefined : `${index} rows`
}

/** A version. */
export function rowsOf(version: number, count: number): Row[] {
  return Array.from({ length: count }, (_, index) => ({
    version,
    index,
    name: `row ${index} of ${version}`,
    parts: new Array<number>(index % 3).fill(version),
  }))
}

function run({ id, flags, keeps }: Work): Report {
  const words = new Int32Array(flags)
  const lists = store.get<SharedList<Row>>(id)
  const kept: [SharedList<Row>, number][] = []
  let [reads, newest] = [0, -1]
  let wrong: string | undefined
  while (Atomics.load(words, 0) === 0 && wrong === undefined) {
    const list = lists.view('list')
    const version = list?.at(0)?.version ?? -1
    if (list === undefined || version < newest) return { reads, newest, wrong: `${version} after ${newest}` }
    if (version > newest) kept.push([list, version])
    if (kept.length > keeps) kept.shift()
    newest = version
    wrong = wrongIn(list, version) ?? kept.map(([old, number]) => wrongIn(old, number)).find((one) => one)
    if (++reads === 1) Atomics.add(words, 1, 1)
    // On a busy machine the writer has to get a core, too.
    if (reads % 16 === 0) Atomics.wait(words, 0, 0, 1)
  }
  return { reads, newest, wrong }
}

if (parentPort !== null) parentPort.postMessage(run(workerData as Work))
