/**
 * Finds the tables: every compiled file bench/dist/tables/<name>.js is one.
 *
 * A new table is a new file; there is no list to edit.
 */
import { readdirSync } from 'node:fs'
import { BenchError } from './errors.ts'
import { DIST_FOLDER } from './paths.ts'
import type { Table } from './table.ts'

export function tableNames(): string[] {
  return readdirSync(`${DIST_FOLDER}/tables`)
    .filter((name) => name.endsWith('.js'))
    .map((name) => name.slice(0, -3))
    .sort()
}

/** Load one table. @throws {BenchError} `UNKNOWN_TABLE` when there is no such file. */
export async function loadTable(name: string): Promise<Table> {
  if (!tableNames().includes(name))
    throw new BenchError('UNKNOWN_TABLE', { name, known: tableNames().join(', ') })
  const { default: table } = (await import(`${DIST_FOLDER}/tables/${name}.js`)) as { default: Table }
  return table
}
