/**
 * What each test of jobs has: the jobs of a zone of its own, and a way to host them.
 *
 * jobs.test.support.ts makes it, for any engine.
 */
import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import type { Fleet } from '../connect.ts'
import type { HostOptions } from '../host/host.ts'
import type { Jobs } from './jobs.ts'

export type Scores = typeof import('../scores.test.support.ts')

/** A zone's jobs, and how to host them. */
export interface Setting {
  readonly name: string
  readonly jobs: Jobs<Scores>
  readonly caller: Fleet
  /** Another connection. */
  connect(): Promise<Fleet>
  /** A host with a connection of its own. */
  begin(options?: Partial<HostOptions>): Promise<Hosting>
  /** A path that does not exist. */
  file(): string
}

export type Hosting = {
  readonly fleet: Fleet
  readonly jobsRunning: number
  close(timeoutMs?: number): Promise<void>
}

export const soon = (): Promise<void> => setTimeout(5)
export const code = (expected: string) => (error: unknown) => {
  assert.equal((error as { code?: unknown }).code, expected, String(error))
  return true
}

export type Check = (title: string, work: (setting: Setting) => Promise<void>) => void
