/**
 * Which process has a run, and which steps run there, for who looks from another one.
 *
 * It is written with an extension of the lease while a step runs, so short steps cost nothing, and it is kept
 * for as long as the lease: that of a process that has died ends when another one may have the run.
 */
import { hostname } from 'node:os'
import { certainly } from '../fleet/internal.ts'
import { decode, encode } from '../transport/index.ts'
import type { OwnRoom, Room } from './room.ts'
import { readable } from './errors.ts'
import { holdersName } from './records.ts'

/** Shortest time that engines keep a value. */
const KEPT_MS_MIN = 1000

/** When the attempts that run have begun, by the keys of their steps. */
export type Running = ReadonlyMap<string, number>

export interface Holding {
  readonly holder: string
  readonly running: Running
}

/** This process. */
export const HOLDER = `${hostname()}:${process.pid}`

/** @param journal That of the run, since another one may have its key before this ends. */
export async function writeHolding(
  room: OwnRoom,
  key: string,
  journal: string,
  running: Running,
): Promise<void> {
  if (running.size === 0) return
  const values = await room.holders()
  const bytes = encode(['holder', HOLDER, [...running], journal])
  await values.put(key, bytes, { ttlMs: Math.max(KEPT_MS_MIN, room.leaseMs) })
}

/** `undefined`: no process has reported that it has the run. */
export async function holdingOf(
  { engine, name, holders }: Room,
  key: string,
  journal: string,
): Promise<Holding | undefined> {
  const isSome = (await certainly(engine, () => engine.valuesIn(holdersName(name)))) > 0
  const entry = isSome ? await certainly(engine, async () => (await holders()).get(key)) : undefined
  const bytes = entry?.bytes
  if (bytes === undefined) return undefined
  const read = (): unknown => decode(bytes)
  const [, holder, running, of] = readable({ name, key }, key, read) as [
    string,
    string,
    [string, number][],
    string,
  ]
  return of === journal ? { holder, running: new Map(running) } : undefined
}
