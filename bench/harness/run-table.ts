/**
 * One run of one table: parameters in, a record out.
 *
 * Nothing is written here; a run that refuses throws before there is a record.
 */
import { BenchError } from './errors.ts'
import { type Machine, readMachine } from './machine.ts'
import type { BenchRecord } from './record.ts'
import type { Context, Parameter, Table } from './table.ts'

/** After so long a quick run of a table starts nothing more. */
const QUICK_MS = 70_000

/** What was typed after the table's name. */
export interface Words {
  readonly quick: boolean
  readonly values: Readonly<Record<string, string | true>>
  /** Other than {@link QUICK_MS}. */
  readonly quickMs?: number
}

/**
 * Run `table` and gather everything that belongs into its record.
 * @param machine Read anew by default, which takes three seconds: it measures what else runs.
 * @throws {BenchError} `WRONG_ANSWER` when a contender's answer is not the known one; parameter codes as in
 *   {@link parameters}.
 */
export async function runTable(
  table: Table,
  words: Words,
  progress: Context['progress'],
  machine: Machine = readMachine(),
): Promise<BenchRecord> {
  const values = parameters(table, words)
  const skipped: { what: string; why: string }[] = []
  const startedAt = new Date()
  const lateMs = performance.now() + (words.quickMs ?? QUICK_MS)
  const context: Context = {
    number: (name) => values[name] as number,
    text: (name) => values[name] as string,
    flag: (name) => values[name] as boolean,
    quick: words.quick,
    isLate: () => words.quick && performance.now() > lateMs,
    progress,
    skip: (what, why) => skipped.push({ what, why }),
  }
  const rows = await table.run(context)
  const seconds = (Date.now() - startedAt.getTime()) / 1000
  return {
    format: 1,
    table: table.name,
    startedAt: startedAt.toISOString(),
    seconds,
    quick: words.quick,
    parameters: values,
    definitions: table.definitions,
    machine,
    skipped,
    rows,
    verdicts: table.verdicts?.(rows) ?? [],
  }
}

/**
 * Complete values of a table's parameters.
 * @throws {BenchError} `UNKNOWN_PARAMETER` or `BAD_PARAMETER`, naming what was received.
 */
export function parameters(
  table: Pick<Table, 'name' | 'parameters'>,
  { quick, values }: Words,
): Record<string, number | string | boolean> {
  const unknown = Object.keys(values).find((name) => table.parameters[name] === undefined)
  if (unknown !== undefined) {
    const known = Object.keys(table.parameters)
      .map((name) => `--${name}`)
      .join(' ')
    throw new BenchError('UNKNOWN_PARAMETER', { name: unknown, table: table.name, known })
  }
  return Object.fromEntries(
    Object.entries(table.parameters).map(([name, parameter]) => [
      name,
      valueOf(name, parameter, { given: values[name], quick }),
    ]),
  )
}

function valueOf(
  name: string,
  parameter: Parameter,
  { given, quick }: { given: string | true | undefined; quick: boolean },
): number | string | boolean {
  if (given === undefined) return quick ? (parameter.quick ?? parameter.value) : parameter.value
  if (typeof parameter.value === 'boolean') {
    if (given === true) return true
    throw new BenchError('BAD_PARAMETER', { name, received: given, expected: 'alone, without a value' })
  }
  if (given === true)
    throw new BenchError('BAD_PARAMETER', { name, received: 'nothing', expected: 'followed by a value' })
  if (typeof parameter.value === 'string') return given
  const number = Number(given.replace(/_/g, ''))
  if (!(number > 0))
    throw new BenchError('BAD_PARAMETER', { name, received: given, expected: 'a number above 0' })
  return number
}
