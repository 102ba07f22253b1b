/**
 * `npm run bench -- counts`: what an operation costs that no machine changes.
 *
 * System calls and the bytes that they pass, calls between JavaScript and the native core, bytes of heap: of
 * one operation of each subject. counts.json has them in git, so that its diff shows what changes.
 * `--check` compares and writes nothing; the bench's own tests do the same.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BenchError } from '../harness/errors.ts'
import { BENCH_FOLDER, DIST_FOLDER } from '../harness/paths.ts'
import type { Printed } from './program.ts'
import { SUBJECTS } from './subjects.ts'
import { CALLS, type Traced, readTrace } from './trace.ts'

export const SNAPSHOT = `${BENCH_FOLDER}/counts.json`
/** Whose compiler and libuv the snapshot is of. */
export const MAJOR = 24
/** Far above what a busy machine needs: a minute for all of them, when nothing else runs. */
const TIMEOUT_MS = 600_000
/** V8 decides anew in each minor version what it allocates. */
const HEAP_SHARE = 0.1
/** Nothing is compiled or collected beside the program, and nothing is collected while it is counted. */
const FLAGS = ['--single-threaded', '--expose-gc', '--min-semi-space-size=64', '--max-semi-space-size=64']
const TRACED = ['30', '20']
const WARM = ['2000', '500']
/** Each waits for a disk. */
const WARM_ON_DISK = ['200', '100']

/** What one operation costs. */
export interface Counted {
  readonly calls: Traced
  readonly crossings: Readonly<Record<string, number>>
  readonly heapBytes: number
}
export type Counts = Readonly<Record<string, Counted>>

/** Why nothing can be counted here; undefined: it can. */
export function whyNotCounted(node: string): string | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'the snapshot is of Linux on x64'
  if (spawnSync('strace', ['-o', '/dev/null', 'true']).status !== 0)
    return 'strace is missing, or may not trace'
  const found = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout ?? ''
  return found.startsWith(`v${MAJOR}.`) ? undefined : `the snapshot is of Node ${MAJOR}: pass --node ${MAJOR}`
}

/** @throws {BenchError} `CONTENDER_DIED` when a program fails, or gets a wrong answer. */
export function count(node: string, progress: (line: string) => void): Counts {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-counts-'))
  try {
    const counted = Object.entries(SUBJECTS).map(([name, { varies = [], isOnDisk = false }]) => {
      progress(`counts: ${name}`)
      const log = join(folder, 'trace')
      const tracer = ['strace', '-f', '-o', log, `-etrace=${CALLS.join()}`]
      const { crossings } = run([...tracer, node, ...FLAGS], 'trace', [name, ...TRACED], folder)
      const heap = run([node, ...FLAGS], 'heap', [name, ...(isOnDisk ? WARM_ON_DISK : WARM)], folder)
      const calls = Object.entries(readTrace(readFileSync(log, 'utf8').split('\n')))
      const one: Counted = {
        calls: Object.fromEntries(calls.filter(([call]) => !varies.includes(call))),
        crossings: Object.fromEntries(
          Object.entries(crossings)
            .map(([call, often]) => [call, Math.round(often)] as const)
            .filter(([, often]) => often > 0),
        ),
        heapBytes: Math.round(heap.heapBytes),
      }
      return [name, one] as const
    })
    return Object.fromEntries(counted)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function run(
  command: readonly string[],
  how: 'trace' | 'heap',
  words: readonly string[],
  folder: string,
): Printed {
  const [program, ...flags] = command as [string, ...string[]]
  const { status, stdout, stderr } = spawnSync(
    program,
    [...flags, `${DIST_FOLDER}/counts/program.js`, ...words],
    {
      encoding: 'utf8',
      timeout: TIMEOUT_MS,
      env: {
        ...process.env,
        TMPDIR: folder,
        NODE_V8_COVERAGE: '',
        NODE_OPTIONS: `--import=${DIST_FOLDER}/counts/crossings.js`,
        CORESPUN_COUNTS: how,
      },
    },
  )
  if (status !== 0) throw new BenchError('CONTENDER_DIED', { contender: words.join(' '), why: stderr.trim() })
  return JSON.parse(stdout) as Printed
}

/** A line for each figure that differs; the heap may by a tenth. */
export function differences(before: Counts, after: Counts): string[] {
  const lines: string[] = []
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [had, has] = [flat(before[name]), flat(after[name])]
    for (const key of new Set([...had.keys(), ...has.keys()])) {
      const [was, is] = [had.get(key) ?? 0, has.get(key) ?? 0]
      const most = key === 'heap bytes' ? HEAP_SHARE * was : 0
      if (Math.abs(is - was) > most) lines.push(`${name}: ${key}: ${was} before, ${is} now`)
    }
  }
  return lines
}

function flat(counted: Counted | undefined): Map<string, number> {
  if (counted === undefined) return new Map()
  const { calls, crossings, heapBytes } = counted
  return new Map([
    ...Object.entries(calls),
    ...Object.entries(crossings).map(([call, often]) => [`crossing ${call}`, often] as const),
    ['heap bytes', heapBytes],
  ])
}

export function readSnapshot(): Counts {
  return JSON.parse(readFileSync(SNAPSHOT, 'utf8')) as Counts
}

/** The command. @throws {BenchError} `NOT_HERE` where nothing can be counted. */
export function counts(words: readonly string[], progress: (line: string) => void): number {
  const why = whyNotCounted(process.execPath)
  if (why !== undefined) throw new BenchError('NOT_HERE', { what: 'counts', why })
  const found = count(process.execPath, progress)
  if (!words.includes('--check')) {
    writeFileSync(SNAPSHOT, `${JSON.stringify(found, undefined, 2)}\n`)
    console.log(`${Object.keys(found).length} subjects: ${SNAPSHOT}`)
    return 0
  }
  const lines = differences(readSnapshot(), found)
  for (const line of lines) console.log(line)
  console.log(
    lines.length === 0 ? 'as in counts.json' : 'if that is meant: npm run bench -- counts --node 24',
  )
  return lines.length === 0 ? 0 : 1
}
