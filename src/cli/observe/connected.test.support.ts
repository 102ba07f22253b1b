/**
 * What a worker does that has a connection to a fleet: hosts jobs that fail, and blocks its thread.
 *
 * Loaded by its URL.
 */
import { connect, host } from '../../fleet/index.ts'

const MODULE = new URL("data:text/javascript,export const send = () => { throw new Error('no address') }")
const ended: (() => Promise<unknown>)[] = []

/** Connects, and has a dead job with that key. */
export async function connected(address: string, key: string): Promise<void> {
  const fleet = await connect(address)
  const hosting = await host(fleet, { name: 'mail', module: MODULE, version: '1', jobsMax: 1 })
  const jobs = fleet.jobs<{ send(): void }>('mail')
  await jobs.submit(key, 'send', [], { retry: { attemptsMax: 1 } })
  await jobs.result(key).catch(() => {}) // it is dead
  ended.push(
    () => hosting.close(),
    () => fleet.close(),
  )
}

export async function disconnected(): Promise<void> {
  for (const end of ended.splice(0)) await end()
}

/** Until the first word is not 0; the second is not 0 once it has begun. */
export function blocked(shared: SharedArrayBuffer): void {
  const words = new Int32Array(shared)
  Atomics.store(words, 1, 1)
  Atomics.wait(words, 0, 0)
}
