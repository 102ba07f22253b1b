/**
 * `npm run bench -- ab --against <checkout>`: another built checkout (A) and this one (B), slice by slice in
 * turn.
 *
 * Both run the workloads of this bench, compiled once and staged for each side with a package of links to
 * that side's lib/, so that package names and folders behind the doors may differ. Several pairs of
 * processes run each section, because compiled code differs from process to process by more than slices
 * differ inside one: a row is the median over pairs of B's fastest slice divided by A's, as what disturbs a
 * slice only makes it slower. Rows that look slower are measured again by as many new pairs, and those alone
 * decide. Nothing is recorded.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Child } from '../harness/child.ts'
import { BenchError } from '../harness/errors.ts'
import { isBusy, machineLines, readMachine } from '../harness/machine.ts'
import { DIST_FOLDER, PACKAGE_FOLDER } from '../harness/paths.ts'
import { aligned, figure } from '../harness/print.ts'
import { type Summary, summary } from '../harness/stats.ts'
import { parameters, type Words } from '../harness/run-table.ts'
import { chosenFrom, type Table } from '../harness/table.ts'
import type { Measured } from './host.ts'

/** What is compared; each section has processes of its own. */
const SECTIONS = ['execute', 'transport', 'store', 'arrow', 'fiber', 'http'] as const

/** The files of a checkout that the workloads import, by the name they import them under. */
const DOORS = ['', 'zone', 'transport', 'store', 'sync', 'fiber', 'arrow', 'http'] as const

/** Slower than this, beyond noise, is marked. */
const SLOWER_MIN = 1.03
const CLOCKS = ['wallNs', 'cpuNs'] as const
/** So long for all sections, a little more where rows are measured again; but never fewer pairs than that. */
const SECONDS_MAX = 200
const PAIRS_MIN = 3

/** How it is run. */
export interface AbPlan {
  /** Folder of the other checkout. */
  readonly against: string
  readonly sections: readonly string[]
  readonly secondsMax: number
  readonly pairs: number
  readonly rounds: number
  readonly sliceMs: number
  /** What a row does before its first slice. */
  readonly warmMs: number
}

/** Its parameters, as a table has them. */
const AB: Pick<Table, 'name' | 'parameters'> = {
  name: 'ab',
  parameters: {
    against: { value: '', doc: 'folder of the other checkout, built: side A' },
    sections: { value: 'all', doc: `of ${SECTIONS.join(',')}` },
    'seconds-max': {
      value: SECONDS_MAX,
      doc: `when no further pair begins, after the first ${PAIRS_MIN} of a section`,
    },
    pairs: { value: 7, quick: 3, doc: 'pairs of processes for each section' },
    rounds: { value: 4, quick: 3, doc: 'slices of each row in a process' },
    'slice-ms': { value: 20, quick: 10, doc: 'length of one slice' },
    'warm-ms': { value: 60, quick: 30, doc: 'how long a row runs unmeasured before its first slice' },
  },
}

type Side = 'A' | 'B'
/** What a pair of processes measured of one row: a figure of each round. */
type Rounds = Readonly<Record<Side, Measured[]>>
/** Pairs by row. */
type Found = Map<string, readonly Rounds[]>

/**
 * What was typed, read. @throws {BenchError} `UNKNOWN_PARAMETER` or `BAD_PARAMETER`.
 */
export function planOf(words: Words): AbPlan {
  const values = parameters(AB, words)
  return {
    against: values['against'] as string,
    sections: chosenFrom(values['sections'] as string, 'sections', SECTIONS),
    secondsMax: values['seconds-max'] as number,
    pairs: values['pairs'] as number,
    rounds: values['rounds'] as number,
    sliceMs: values['slice-ms'] as number,
    warmMs: values['warm-ms'] as number,
  }
}

/** Compare and print. @throws {BenchError} as the tables do, and `BAD_PARAMETER` for no checkout. */
export async function compareCheckouts(plan: AbPlan, progress: (line: string) => void): Promise<void> {
  const checkouts = { A: checkoutOf(plan.against), B: checkoutOf(PACKAGE_FOLDER) }
  const machine = readMachine()
  const [startedMs, staged] = [performance.now(), { A: stage('A', checkouts.A), B: stage('B', checkouts.B) }]
  const lines: string[] = []
  try {
    for (const section of plan.sections) lines.push(...(await sectionLines(section, staged, plan, progress)))
  } finally {
    for (const folder of Object.values(staged)) rmSync(folder, { recursive: true, force: true })
  }
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(0)
  console.log(
    `A ${plan.against}\nB ${PACKAGE_FOLDER}\n${seconds} s, up to ${plan.pairs} pairs, ${plan.rounds} rounds`,
  )
  console.log(machineLines(machine).slice(0, 2).join('\n'))
  if (isBusy(machine))
    console.log('BUSY MACHINE: others were at work when this began; trust only rows that were measured again')
  console.log(lines.join('\n'))
}

function checkoutOf(folder: string): string {
  const path = resolve(folder)
  if (existsSync(`${path}/dist/index.js`)) return realpathSync(path)
  const expected = 'the folder of a checkout with a dist/index.js (npm run build there)'
  throw new BenchError('BAD_PARAMETER', { name: 'against', received: folder, expected })
}

/** A copy of the compiled bench whose imports of this package lead to the doors of `checkout`. */
function stage(side: Side, checkout: string): string {
  const folder = `${DIST_FOLDER}/ab-${process.pid}-${side}`
  for (const part of ['ab', 'contenders', 'harness', 'tables'])
    cpSync(`${DIST_FOLDER}/${part}`, `${folder}/${part}`, { recursive: true })
  const { name } = JSON.parse(readFileSync(`${PACKAGE_FOLDER}/package.json`, 'utf8')) as { name: string }
  const links = `${folder}/node_modules/${name}`
  mkdirSync(links, { recursive: true })
  const exports: Record<string, string> = {}
  for (const door of DOORS) {
    const file = compiled(checkout, ...(door === '' ? ['index.js'] : [`${door}.js`, `${door}/index.js`]))
    if (file === undefined) continue
    const link = `./${door === '' ? 'index' : door}.js`
    writeFileSync(`${links}/${link}`, `export * from ${JSON.stringify(pathToFileURL(file))}\n`)
    exports[door === '' ? '.' : `./${door}`] = link
  }
  // What harness/internal.ts loads; version 0.1.0 exports it with the rest.
  const internals = compiled(checkout, 'internal.js', 'transport/internal.js', 'transport/index.js')
  writeFileSync(`${links}/internal.js`, `export * from ${JSON.stringify(pathToFileURL(internals!))}\n`)
  writeFileSync(`${links}/package.json`, JSON.stringify({ name, type: 'module', exports }))
  return folder
}

/** The first of these files that a checkout has, bundled to lib, or in dist as older ones have it. */
function compiled(checkout: string, ...files: string[]): string | undefined {
  const paths = files.flatMap((file) => [`${checkout}/lib/${file}`, `${checkout}/dist/${file}`])
  return paths.find((path) => existsSync(path))
}

async function sectionLines(
  section: string,
  staged: Readonly<Record<Side, string>>,
  plan: AbPlan,
  progress: (line: string) => void,
): Promise<string[]> {
  const leftOut = new Set<string>()
  const lateMs = performance.now() + (plan.secondsMax / plan.sections.length) * 1000
  const pairsOf = async (isChosen: (row: string) => boolean, what: string): Promise<Found> => {
    const found: Found = new Map()
    for (let pair = 0; pair < plan.pairs; pair += 1) {
      if (pair >= PAIRS_MIN && performance.now() > lateMs) {
        leftOut.add(
          `${plan.pairs - pair} of ${plan.pairs} pairs${what}: the machine is busy and the time was over`,
        )
        break
      }
      progress(`${section}${what}, pair ${pair + 1} of ${plan.pairs}`)
      await measurePair({ section, staged, plan, isChosen, leftOut, isTurned: pair % 2 === 1 }, found)
    }
    return found
  }
  const found = await pairsOf(() => true, '')
  const slower = [...found].filter(([, pairs]) => isSlower(pairs)).map(([row]) => row)
  const again = slower.length === 0 ? new Map() : await pairsOf((row) => slower.includes(row), ' again')
  return ['', section, ...rowLines(found, again), ...[...leftOut].map((line) => `  left out: ${line}`)]
}

/** Two new processes, the chosen rows one after the other, slices in the order A B B A. */
async function measurePair(
  of: {
    readonly section: string
    readonly staged: Readonly<Record<Side, string>>
    readonly plan: AbPlan
    readonly isChosen: (row: string) => boolean
    readonly leftOut: Set<string>
    readonly isTurned: boolean
  },
  found: Found,
): Promise<void> {
  const order: Side[] = of.isTurned ? ['B', 'A'] : ['A', 'B']
  const hosts = await hostsOf(order, of)
  try {
    for (const row of rowsOf(hosts, of.leftOut).filter(of.isChosen)) {
      const rounds: Rounds = { A: [], B: [] }
      for (const side of order) await hosts[side].order({ row, ms: of.plan.warmMs })
      for (let round = 0; round < of.plan.rounds; round += 1) {
        for (const side of round % 2 === 0 ? order : [...order].reverse())
          rounds[side].push(await hosts[side].order<Measured>({ row, ms: of.plan.sliceMs }))
      }
      found.set(row, [...(found.get(row) ?? []), rounds])
    }
  } finally {
    await Promise.all([hosts.A.end(), hosts.B.end()])
  }
}

type Hosts = Readonly<Record<Side, Child>>

/** A process of each side that has the section open, started in that order. */
async function hostsOf(
  order: readonly Side[],
  of: { readonly section: string; readonly staged: Readonly<Record<Side, string>> },
): Promise<Hosts> {
  const started = await Promise.allSettled(
    order.map((side) => Child.start(side, [process.execPath, `${of.staged[side]}/ab/host.js`, of.section])),
  )
  const children = started.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []))
  const failed = started.find((start) => start.status === 'rejected')
  if (failed !== undefined) {
    await Promise.all(children.map((child) => child.end()))
    throw failed.reason
  }
  return Object.fromEntries(children.map((child) => [child.contender, child])) as unknown as Hosts
}

/** Rows that both sides have; the others go to `leftOut`. */
function rowsOf(hosts: Hosts, leftOut: Set<string>): string[] {
  const [a, b] = [hosts.A.ready, hosts.B.ready] as Readonly<Record<string, string>>[]
  for (const row of Object.keys({ ...a, ...b })) {
    if (a[row] !== '') leftOut.add(`${row}: A ${a[row] ?? 'does not have it'}`)
    if (b[row] !== '') leftOut.add(`${row}: B ${b[row] ?? 'does not have it'}`)
  }
  return Object.keys(b).filter((row) => a[row] === '' && b[row] === '')
}

function rowLines(found: Found, again: Found): string[] {
  const cells = [...found].map(([row, pairs]) => {
    const ns = (side: Side): string =>
      timeOf(summary(pairs.map((rounds) => fastest(rounds, side, 'wallNs'))).median)
    const second = again.get(row)
    const mark = second === undefined ? '' : isSlower(second) ? '<-- SLOWER, also again:' : 'again:'
    return [
      row,
      ns('A'),
      ns('B'),
      ...quotientCells(pairs),
      mark,
      ...(second === undefined ? [] : quotientCells(second)),
    ]
  })
  const head = ['', 'A', 'B', 'B/A', '', 'B/A of CPU']
  return aligned([head, ...cells]).map((line) => `  ${line}`)
}

function fastest(rounds: Rounds, side: Side, clock: keyof Measured): number {
  return Math.min(...rounds[side].map((one) => one[clock]))
}

/** B's fastest slice divided by A's, over pairs of processes. */
function quotient(pairs: readonly Rounds[], clock: keyof Measured): Summary {
  return summary(pairs.map((rounds) => fastest(rounds, 'B', clock) / fastest(rounds, 'A', clock)))
}

/** CPU time counts spinning, but no turns of other processes; a row is slower where both clocks agree. */
function isSlower(pairs: readonly Rounds[]): boolean {
  return CLOCKS.map((clock) => quotient(pairs, clock)).every(
    ({ median, low }) => median > SLOWER_MIN && low > 1,
  )
}

function quotientCells(pairs: readonly Rounds[]): string[] {
  return CLOCKS.flatMap((clock) => {
    const { median, low, high } = quotient(pairs, clock)
    return [median.toFixed(3), `[${low.toFixed(2)}–${high.toFixed(2)}]`]
  })
}

function timeOf(ns: number): string {
  return ns < 1000 ? `${figure(ns)} ns` : `${figure(ns / 1000)} µs`
}
