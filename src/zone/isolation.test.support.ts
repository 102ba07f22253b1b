/**
 * What the tests of isolated zones call in their processes, by module: a class that both sides register, and
 * functions that look at the process which runs them.
 */
import { register } from '../transport/index.ts'
import { type Zone, workerState, zone } from './index.ts'

export class Refused extends Error {
  readonly code = 'REFUSED'
  readonly amount: number
  constructor(amount: number) {
    super(`refused: ${amount}`)
    this.amount = amount
  }
}
register(Refused, { cid: 'test.isolation.Refused' })

export function echo(value: unknown): unknown {
  return value
}

export function refuse(amount: number): never {
  throw new Refused(amount)
}

/** Whether this process has run the setup, which notes its number. */
export function isSetUp(): boolean {
  return workerState<{ readonly pid: number }>().pid === process.pid
}

/** The zone here, whether its tasks run in this process, and what a thread has written to shared memory. */
export async function inside(): Promise<unknown[]> {
  const me = zone.current as Zone
  const pid = await me.run(() => process.pid)
  const shared = new SharedArrayBuffer(4)
  await zone.cpu.run((memory) => void new Int32Array(memory).fill(7), shared)
  await zone.cpu.close()
  return [me.id, pid === process.pid, new Int32Array(shared)[0]]
}
