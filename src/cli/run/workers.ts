/**
 * The workers of `corespun run`: one at once, the others when there is work for them.
 *
 * A worker costs as much CPU as an empty process and a half, and a run on a few small files is over before a
 * second one could help. So the others start when many items are found, or when the first has run for a
 * while and the run has not ended.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { getEnvironmentData } from 'node:worker_threads'
import type { WorkerEvent } from '../../zone/index.ts'
import { createGradually, takeEarly } from '../../zone/internal.ts'
import { JOB_KEY } from './job.ts'
import type { ItemZone, ItemZoneSettings } from './mapper.ts'

export { installTypeScript } from '../../zone/internal.ts'

/** How long the first worker runs alone once it is ready, in ms: a fraction of a start. */
const ALONE_MS = 20
/** How long the others wait for it to be ready, in ms: longer than a start takes beside other programs. */
const START_MS = 250

/** Open the zone of a run. The environment data of its workers is set. */
export function openZone(settings: ItemZoneSettings): ItemZone {
  const watch = watchWorkers(() => startLater(ALONE_MS))
  const { zone: own, startOthers } = createGradually('corespun run', settings, {
    spare: takeEarly(),
    environment: [[JOB_KEY, getEnvironmentData(JOB_KEY)]],
  })
  let timer: NodeJS.Timeout | undefined
  const startLater = (afterMs: number): void => {
    clearTimeout(timer)
    timer = setTimeout(startOthers, afterMs).unref()
  }
  startLater(START_MS)
  // What an item left behind and then threw: its record is written, and the others go on.
  own.onError((error) => console.error('corespun: an error behind an item was not caught:', error))
  return {
    execute: (module, name, args, options) => own.execute(module, name, args, options),
    module: (url) => own.module(url),
    startAll() {
      watch.stop()
      clearTimeout(timer)
      startOthers()
    },
    close() {
      watch.stop()
      clearTimeout(timer)
      return Promise.race([own.close(), watch.hasEnded()])
    },
  }
}

/**
 * Watch workers start and end.
 * @param onFirst Called when one is ready, unless `stop` was called.
 * @returns `hasEnded`, whose promise resolves when each worker that was ready has ended. One that is still
 * starting has run nothing, and the end of the process need not wait for it.
 */
function watchWorkers(onFirst: () => void): { stop(): void; hasEnded(): Promise<void> } {
  const ready = new Set<string>()
  let check = (): void => {}
  const first = (): void => {
    stop()
    onFirst()
  }
  const stop = (): void => void unsubscribe('corespun:worker:ready', first)
  subscribe('corespun:worker:ready', first)
  subscribe('corespun:worker:ready', (event) => void ready.add((event as WorkerEvent).worker))
  subscribe('corespun:worker:ended', (event) => {
    ready.delete((event as WorkerEvent).worker)
    check()
  })
  return {
    stop,
    async hasEnded() {
      // Results may be faster than the message that their worker is ready.
      for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate)
      await new Promise<void>((resolve) => {
        check = () => void (ready.size === 0 && resolve())
        check()
      })
    },
  }
}
