/**
 * What tests that any engine runs have in common: two connections to one engine, and names that are new.
 *
 * What must be true is in messages.test.support.ts and keeps.test.support.ts, a suite for each half. Nothing
 * waits for time to pass but through the engine's own clock.
 */
import { test } from 'node:test'
import { FleetError } from '../errors.ts'
import type { Engine } from './engine.ts'

/** Where engines meet. */
export interface Venue {
  connect(): Promise<Engine>
  close(): Promise<void>
}

let names = 0
const unique = process.pid.toString(36)
/** A name that no test had before. */
export const newName = (): string => `n${unique}_${++names}`

export const text = (bytes: Uint8Array | undefined): string | undefined =>
  bytes === undefined ? undefined : Buffer.from(bytes).toString()
export const bytes = (of: string): Uint8Array => new Uint8Array(Buffer.from(of))

/** What comes to a callback, one after the other, and a promise of what has not come yet. */
export class Arrivals<Value> {
  readonly #waiting: ((value: Value) => void)[] = []
  readonly #values: Value[] = []
  readonly push = (value: Value): void => {
    const next = this.#waiting.shift()
    if (next === undefined) this.#values.push(value)
    else next(value)
  }

  next(): Promise<Value> {
    if (this.#values.length > 0) return Promise.resolve(this.#values.shift()!)
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  get count(): number {
    return this.#values.length
  }
}

export const LONG_MS = 60_000
export const isCode = (code: string) => (error: unknown) => error instanceof FleetError && error.code === code

/** A test with two connections. */
export type Check<Half> = (name: string, work: (one: Half, other: Half) => Promise<void>) => void

/** Tests of one half, with a venue of that kind for each of them. */
export function checkOf<Half>(
  kind: string,
  open: () => Promise<Venue>,
  halfOf: (engine: Engine) => Half,
): Check<Half> {
  return (name, work) => {
    test(`${kind}: ${name}`, async () => {
      const venue = await open()
      const [one, other] = await Promise.all([venue.connect(), venue.connect()])
      try {
        await work(halfOf(one), halfOf(other))
      } finally {
        await Promise.all([one.close(), other.close()])
        await venue.close()
      }
    })
  }
}
