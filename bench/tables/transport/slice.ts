/**
 * The clock of table `transport`: CPU time of the measuring thread over a slice of calls.
 *
 * Nothing measured here waits, so CPU time is what the calls cost, whoever else uses the machine. It holds
 * the thread's own garbage collection; before Node 23.9 there is only the CPU time of the process, with the
 * helpers of collector and compiler in it.
 */
import { OBJECTS } from './payloads.ts'

type Usage = { readonly user: number; readonly system: number }

const usage = ((process as { threadCpuUsage?: () => Usage }).threadCpuUsage ?? process.cpuUsage).bind(process)

/** Nanoseconds per call of `run` over about `sliceMs`; it is given the numbers of the objects in turn. */
export function slice(run: (index: number) => unknown, sliceMs: number): number {
  const before = usage()
  let calls = 0
  let elapsedUs = 0
  do {
    for (let index = 0; index < OBJECTS; index += 1) run(index)
    calls += OBJECTS
    const now = usage()
    elapsedUs = now.user + now.system - before.user - before.system
  } while (elapsedUs < sliceMs * 1000)
  return (elapsedUs * 1000) / calls
}
