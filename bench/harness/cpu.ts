/**
 * CPU time of other processes, as Linux counts it in /proc.
 *
 * Its ticks are long, 10 ms as a rule: for slices of a second and more.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

const TICKS_PER_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/** CPU seconds of a process and its threads so far. @throws If it has ended. */
export const cpuSeconds = (pid: number): number => ticksOf(pid).slice(0, 2).reduce(add) / TICKS_PER_SECOND

/** Of a process and its children, those that have ended too. @throws If it has ended. */
export function familyCpuSeconds(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
  const ofChild = (child: string): number => {
    try {
      return cpuSeconds(Number(child))
    } catch {
      return 0 // it has ended meanwhile, and its parent has its time
    }
  }
  return ticksOf(pid).reduce(add) / TICKS_PER_SECOND + children.map(ofChild).reduce(add)
}

const add = (one: number, other: number): number => one + other

/** Of a process in user and in system mode, and the same of its children that have ended. */
function ticksOf(pid: number): number[] {
  const path = `/proc/${pid}/stat`
  if (!existsSync(path))
    throw new Error(`process ${pid}, which is measured, has ended; its messages are above`)
  const stat = readFileSync(path, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields.slice(11, 15).map(Number)
}
