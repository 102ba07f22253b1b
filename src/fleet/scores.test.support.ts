/**
 * The module that hosts of the tests run.
 *
 * Each of its functions is for one test of calls.test.support.ts.
 */
import { register } from '../transport/index.ts'
import { currentTask } from '../zone/index.ts'

/** An error of the module's own: callers that register it receive it as it is. */
export class ScoreError extends Error {
  readonly code: string
  constructor(code: string, options?: ErrorOptions) {
    super(`no score: ${code}`, options)
    this.code = code
  }
}
register(ScoreError, { cid: 'test.ScoreError' })

export const score = (text: string): number => text.length
export const nothing = (): undefined => undefined
export const where = (): string => `${process.pid}`
export const echo = <T>(value: T): T => value
export const sized = (length: number): Uint8Array => new Uint8Array(length).fill(length)

export function fail(code: string): never {
  throw new ScoreError(code, { cause: new RangeError('too much') })
}

export function failOddly(): never {
  throw Object.assign(new (class Odd extends TypeError {})('odd'), { code: 'ODD', fn: () => 1 })
}

/** Ends when it is cancelled, with the reason. */
export function wait(): Promise<never> {
  const signal = currentTask()!.signal
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error))
  })
}

/** Waits until a file of that name is there: a task that a test ends. */
export async function until(file: string): Promise<string> {
  const { existsSync } = await import('node:fs')
  const { setTimeout: after } = await import('node:timers/promises')
  while (!existsSync(file)) await after(5)
  return file
}

export async function* rows(count: number, failing = false): AsyncGenerator<number> {
  for (let row = 0; row < count; row++) yield row
  if (failing) throw new ScoreError('ROWS')
}

/** Endless, and writes a file when it is ended. */
export async function* endless(file: string): AsyncGenerator<number> {
  const { writeFileSync } = await import('node:fs')
  try {
    for (let row = 0; ; row++) yield row
  } finally {
    writeFileSync(file, 'ended')
  }
}

export const notAFunction = 1
