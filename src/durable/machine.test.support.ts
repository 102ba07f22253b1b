/**
 * What the tests of durable runs have: processes that offer definitions and die, and gates.
 *
 * A process that dies is a connection that is closed under its runs.
 */
import type { Fleet } from '../fleet/index.ts'
import type { Durable, Runs } from './index.ts'

/** Resolved from outside. */
export function gate<Value = void>(): { readonly opened: Promise<Value>; open(value: Value): void } {
  let open: (value: Value) => void = () => {}
  const opened = new Promise<Value>((resolve) => (open = resolve))
  return { opened, open: (value) => open(value) }
}

export const SOON = { leaseMs: 200, idleMs: 60_000 }
export const HOUR_MS = 3_600_000

/** Runs of one connection, which can be closed under them. */
export interface Machine<Definitions extends readonly Durable[]> {
  readonly work: Runs<Definitions>
  die(): Promise<void>
  queues: Fleet['queues']
  valuesIn(name: string): Promise<number>
}

export type Begin = <const Definitions extends readonly Durable[]>(
  definitions: Definitions,
  options?: {
    readonly idleMs?: number
    readonly runsMax?: number
    readonly leaseMs?: number
    readonly release?: string
  },
) => Promise<Machine<Definitions>>
export type Named = (what: string, body: (begin: Begin) => Promise<void>) => void
