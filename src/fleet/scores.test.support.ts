/**
 * The module that hosts of the tests run.
 *
 * Each of its functions is for one test of calls.test.support.ts or jobs.test.support.ts.
 */
import { appendFileSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { register } from '../transport/index.ts'
import { carry, currentTask, currentTrace } from '../zone/index.ts'
import { currentJob } from './worker/current.ts'
import { NonRetryableError } from './worker/non-retryable.ts'

/** An error of the module's own: callers that register it receive it as it is. */
export class ScoreError extends Error {
  readonly code: string
  constructor(code: string, options?: ErrorOptions) {
    super(`no score: ${code}`, options)
    this.code = code
  }
}
register(ScoreError, { cid: 'test.ScoreError' })

/** A value that calls to local zones take with them. */
export const user = carry<string>('test.fleet.user')

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

/** Its class is not registered. */
class Blocked extends NonRetryableError {}

export function block(message: string): never {
  throw new Blocked(message, { cause: new RangeError('too much') })
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

/** What has travelled with the call. */
export const traced = (): unknown => [currentTrace(), currentJob()?.trace, user.getStore()]

export function* tracedRows(): Generator<unknown> {
  yield traced()
}

/** As a job: reports, waits for a file, and returns what it is. */
export async function report(file: string): Promise<unknown[]> {
  currentJob()!.progress({ at: 'something before' })
  currentJob()!.progress({ at: 'the begin' })
  await until(file)
  const { key, attempt } = currentJob()!
  return [key, attempt]
}

/** As a job: ends when its host leaves, and asks for that at once, or when a file is there. */
export async function left(started: string, asks?: string): Promise<string> {
  appendFileSync(started, '.')
  if (asks !== undefined) await until(asks)
  const { leaving } = currentJob()!
  if (!leaving.aborted) await new Promise((resolve) => leaving.addEventListener('abort', resolve))
  return String(leaving.reason)
}

/** As a job: fails in its first attempts. */
export function third(): number {
  const { attempt } = currentJob()!
  if (attempt < 3) throw new ScoreError(`ATTEMPT_${attempt}`)
  return attempt
}

export const failLongly = (chars: number): never => fail('x'.repeat(chars))

/** As a job: how those have ended that it has waited for. */
export const joined = (): unknown[] =>
  currentJob()!.ended.map(({ key, status, value, error }) => [key, status, value, (error as Error)?.message])

/** As a job: how many of those with its folder have run meanwhile, at most. */
export async function together(folder: string): Promise<number> {
  const { setTimeout: after } = await import('node:timers/promises')
  const own = `${folder}/${currentJob()!.key}`
  appendFileSync(own, '.')
  let most = 0
  for (let look = 0; look < 5; look++) {
    most = Math.max(most, readdirSync(folder).length)
    await after(2)
  }
  rmSync(own)
  return most
}

/** Blocks its worker, and counts how often it has run. */
export function busy(file: string, ms: number): number {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
  appendFileSync(file, '.')
  return readFileSync(file).length
}
