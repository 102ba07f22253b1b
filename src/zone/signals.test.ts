/**
 * Signals among the arguments of a call, and the garbage collector: an abort arrives although the signal is
 * held by nothing but its listener, and although its sender no longer has it; what cannot be aborted is not
 * kept.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { inZone, until } from './api/zones.test.support.ts'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

/** Collects garbage in turns, until `isGone`, so that finalizers run. */
async function collectUntil(isGone: () => boolean): Promise<void> {
  await until(() => {
    gc()
    return isGone()
  })
}

test('a task that only listens for the abort of a signal receives it after a collection', () =>
  inZone({ workers: 1, tasksPerWorkerMax: 2 }, async (own) => {
    const cells = new Int32Array(new SharedArrayBuffer(8))
    const controller = new AbortController()
    const call = own.run(
      (signal: AbortSignal, flags: Int32Array) => {
        Atomics.store(flags, 0, 1)
        return new Promise((resolve) =>
          signal.addEventListener('abort', (event) => resolve((event.target as AbortSignal).reason)),
        )
      },
      controller.signal,
      cells,
    )
    await until(() => cells[0] === 1)
    // Beside the first task, which is waiting.
    await own.run(async () => {
      const [v8, vm] = await Promise.all([import('node:v8'), import('node:vm')])
      v8.setFlagsFromString('--expose-gc')
      for (let turn = 0; turn < 5; turn++) {
        ;(vm.runInNewContext('gc') as () => void)()
        await new Promise(setImmediate)
      }
    })
    controller.abort('enough')
    assert.equal(await call, 'enough')
  }))

test('a signal that was aborted and collected while its call waited is aborted when the call begins', () =>
  inZone({ workers: 1 }, async (own) => {
    const gate = new Int32Array(new SharedArrayBuffer(4))
    const holds = own.run((cell: Int32Array) => Atomics.wait(cell, 0, 0), gate)
    await until(() => own.stats().running === 1)
    let isGone = false
    const registry = new FinalizationRegistry(() => (isGone = true))
    const call = (() => {
      const controller = new AbortController()
      registry.register(controller.signal, undefined)
      const made = own.run(
        (signal: AbortSignal) => [signal.aborted, signal.reason as unknown],
        controller.signal,
      )
      controller.abort('given up')
      return made
    })()
    await collectUntil(() => isGone)
    Atomics.store(gate, 0, 1)
    Atomics.notify(gate, 0)
    await holds
    assert.deepEqual(await call, [true, 'given up'])
  }))

test('a signal that nobody can abort any more is not kept where it was received', () =>
  inZone({ workers: 1 }, async (own) => {
    interface Kept {
      signals: WeakRef<AbortSignal>[]
    }
    const keep = (signal: AbortSignal): void => {
      const kept = ((globalThis as unknown as Kept).signals ??= [])
      kept.push(new WeakRef(signal))
    }
    const countKept = async (): Promise<number> => {
      const [v8, vm] = await Promise.all([import('node:v8'), import('node:vm')])
      v8.setFlagsFromString('--expose-gc')
      ;(vm.runInNewContext('gc') as () => void)()
      await new Promise(setImmediate)
      return (globalThis as unknown as Kept).signals.filter((signal) => signal.deref() !== undefined).length
    }
    for (let round = 0; round < 20; round++) await own.run(keep, new AbortController().signal)
    const held = new AbortController()
    await own.run(keep, held.signal)
    let count = 21
    for (let left = 200; count > 1 && left > 0; left--) {
      gc()
      await new Promise(setImmediate)
      count = await own.run(countKept)
    }
    // The last one can be aborted still.
    assert.equal(count, 1)
    assert.equal(held.signal.aborted, false)
  }))
