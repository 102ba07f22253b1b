/**
 * The conditions a figure can be measured under, each by its name.
 *
 * A wake-up of a sleeping core costs more than everything else in a call here, so no figure is shown without
 * one.
 */
import { spawnSync } from 'node:child_process'
import os from 'node:os'

export interface Condition {
  readonly name: string
  /** Whether threads may look for work before they sleep. */
  readonly spin: boolean
  /** Words before the command that pins it; empty: not pinned. */
  readonly prefix: readonly string[]
}

/** All threads on core 0. */
export const ONE_CORE: Condition = { name: 'one core', spin: true, prefix: ['taskset', '-c', '0'] }
/** Free to use all cores; idle threads look for work for some microseconds first, where a pool can. */
export const SPINNING: Condition = { name: 'cores spinning', spin: true, prefix: [] }
/** Free to use all cores; idle threads sleep at once. */
export const ASLEEP: Condition = { name: 'cores asleep', spin: false, prefix: [] }

/** Conditions that this machine has; each missing one is passed to `skip` with the reason. */
export function conditions(skip: (what: string, why: string) => void): Condition[] {
  const found: Condition[] = []
  if (os.availableParallelism() > 1) found.push(SPINNING, ASLEEP)
  else skip('cores spinning, cores asleep', 'this machine has one core')
  if (canPin()) found.push(ONE_CORE)
  else skip('one core', 'no taskset (util-linux) on this machine: unpinned figures only')
  return found
}

/** Whether a process can be pinned to core 0 here. */
function canPin(): boolean {
  return spawnSync('taskset', ['-c', '0', process.execPath, '-e', '0'], { stdio: 'ignore' }).status === 0
}
