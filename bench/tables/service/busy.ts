/**
 * Other programs for the table `service`: a busy process for each core, and the share of the processor that
 * another process gets beside them.
 *
 * They belong to the session of that process, so the kernel weighs their threads against each other: with
 * autogroups, threads of different sessions share by session, whatever their priorities.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuSeconds } from '../../harness/cpu.ts'
import { BenchError } from '../../harness/errors.ts'

/** Each ends by itself, so none outlives a bench that was killed. */
const LIFE_MS_MAX = 60_000
const LOOP = `for (const end = Date.now() + ${LIFE_MS_MAX}; Date.now() < end; );`
const PROGRAM = `process.stdout.write('.'); ${LOOP}`

/**
 * Run `body` beside busy processes, one for each core, and end them.
 * @throws {BenchError} `CONTENDER_DIED` when one of them does not start.
 */
export async function besideBusy<Result>(
  body: (busy: readonly number[]) => Promise<Result>,
): Promise<Result> {
  const busy = Array.from({ length: availableParallelism() }, () =>
    spawn(process.execPath, ['-e', PROGRAM], { stdio: ['ignore', 'pipe', 'inherit'] }),
  )
  const exited = busy.map((each) => once(each, 'exit'))
  try {
    await Promise.all(busy.map((each, index) => started(each, exited[index])))
    return await body(busy.map((each) => each.pid!))
  } finally {
    for (const each of busy) each.kill('SIGKILL')
    await Promise.all(exited)
  }
}

/** CPU time of the process `pid` as a part of all that it and `others` get within `seconds`, 0 to 1. */
export async function shareOf(pid: number, others: readonly number[], seconds: number): Promise<number> {
  const pids = [pid, ...others]
  const before = pids.map(cpuSeconds)
  await sleep(seconds * 1000)
  const [own, ...theirs] = pids.map((each, index) => cpuSeconds(each) - before[index])
  return own / theirs.reduce((sum, each) => sum + each, own)
}

async function started(busy: ChildProcess, exited: Promise<unknown>): Promise<void> {
  const isUp = await Promise.race([once(busy.stdout!, 'data').then(() => true), exited.then(() => false)])
  if (!isUp) throw new BenchError('CONTENDER_DIED', { contender: 'busy process', why: 'it did not start' })
}
