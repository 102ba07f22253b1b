/**
 * CPU time of other processes, as Linux counts it in /proc.
 *
 * Its ticks are long, 10 ms as a rule: for slices of a second and more.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

const TICKS_PER_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/** CPU seconds of a process and its threads so far. @throws If it has ended. */
export function cpuSeconds(pid: number): number {
  const path = `/proc/${pid}/stat`
  if (!existsSync(path))
    throw new Error(`process ${pid}, which is measured, has ended; its messages are above`)
  const stat = readFileSync(path, 'utf8')
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
  return (Number(user) + Number(system)) / TICKS_PER_SECOND
}
