/**
 * The stacks of threads that are busy, stuck, idle or about to end, and the tasks of workers.
 * A busy main thread is in test/cli/observe.test.mjs: it has to be another process's.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { until } from '../base/wait.test.support.ts'
import type { Zone } from '../zone/index.ts'
import { answerOf, inZone, observed } from './observe.test.support.ts'
import type { RunningTask, ThreadStack } from './internal.ts'

const SUPPORT = new URL('./stacks.test.support.js', import.meta.url)
type Support = typeof import('./stacks.test.support.ts')
const tasksOf = (own: Zone) => own.module<Support>(SUPPORT)

/** The line of the loop's body, and the one above, which may be that of its head. */
const LOOP = readFileSync(SUPPORT, 'utf8')
  .split('\n')
  .findIndex((line) => line.includes('turns of the loop'))

interface Stacks {
  readonly threads: readonly ThreadStack[]
  readonly tasks: readonly RunningTask[]
}

const stacks = async (path: string): Promise<Stacks> => (await answerOf(path, 'stacks')).result as Stacks

/** Two words: the first ends the task, the second is set when it has begun. */
async function begun(
  own: (words: SharedArrayBuffer) => Promise<unknown>,
  look: () => Promise<void>,
): Promise<void> {
  const words = new SharedArrayBuffer(8)
  const flag = new Int32Array(words)
  const task = own(words)
  try {
    await until(() => Atomics.load(flag, 1) === 1)
    await look()
  } finally {
    Atomics.store(flag, 0, 1)
    Atomics.notify(flag, 0)
  }
  await task
}

/** The innermost frame with a source. */
function frameOf(frames: readonly string[]): string {
  return frames.find((frame) => !frame.startsWith('Atomics.')) ?? ''
}

/** A thread that is idle may be in a callback of Node, such as that of the question itself. */
const isOfTask = (frame: string): boolean => frame.startsWith('Task.')

function threadOf({ threads }: Stacks, worker: string): ThreadStack {
  return threads.find((thread) => thread.worker === worker) ?? assert.fail(`no thread is worker ${worker}`)
}

test('a stuck worker’s stack names the line of the loop, and the task goes on', () =>
  observed({}, ({ path }) =>
    inZone({ workers: 2 }, (own) =>
      begun(tasksOf(own).loop, async () => {
        for (let round = 0; round < 3; round++) {
          const found = await stacks(path)
          const [task, ...others] = found.tasks.filter(({ zone }) => zone === own.id)
          assert.deepEqual(others, [])
          const { ageMs, source, ...rest } = task
          const { worker } = task
          assert.deepEqual(rest, {
            worker,
            thread: worker,
            zone: own.id,
            name: 'loop',
            caller: 'the main thread',
            isCancelled: false,
          })
          assert.equal(source, SUPPORT.href)
          assert.ok(ageMs > 0 && ageMs < 60_000)
          const { frames, problem } = threadOf(found, worker)
          assert.equal(problem, undefined)
          assert.match(frameOf(frames), /^Task\.loop /)
          const [, line] = /:(\d+):\d+\)$/.exec(frameOf(frames)) ?? []
          assert.ok([LOOP, LOOP + 1].includes(Number(line)), frameOf(frames))
          const idle = found.threads.find(
            (thread) => thread.worker?.startsWith(own.id) && thread.worker !== worker,
          )
          assert.deepEqual(idle?.frames.filter(isOfTask), [])
          const main = found.threads.find(({ thread }) => thread === 0)
          assert.deepEqual([main?.name, main?.frames.filter(isOfTask)], ['the main thread', []])
        }
      }),
    ),
  ))

test('a task that another task has called names that worker as its caller', () =>
  observed({}, ({ path }) =>
    inZone({ workers: 1 }, (outer) =>
      inZone({ workers: 1 }, (inner) =>
        begun(
          (words) => tasksOf(outer).calls(inner.id, words),
          async () => {
            const { tasks } = await stacks(path)
            const callerOf = (zone: string) => tasks.find((task) => task.zone === zone)?.caller
            assert.equal(callerOf(inner.id), `${outer.id}/0`)
            assert.equal(callerOf(outer.id), 'the main thread')
          },
        ),
      ),
    ),
  ))

test('a thread that waits in Atomics.wait has a stack, one in native code is named by a code', () =>
  observed({}, ({ path }) =>
    inZone({ workers: 1 }, async (own) => {
      await begun(tasksOf(own).waits, async () => {
        const { frames } = threadOf(await stacks(path), `${own.id}/0`)
        assert.match(frames.slice(0, 2).join(' '), /Atomics\.wait.*\bwaits/)
      })
      const file = `${path}.blocks`
      const task = tasksOf(own).blocks(file)
      try {
        await until(() => existsSync(file))
        const found = await stacks(path)
        const thread = found.threads.find(({ name }) => name === `${own.id}/0`)
        assert.equal(thread?.problem?.code, 'OBSERVE_THREAD_SILENT')
        assert.equal(found.tasks.find(({ zone }) => zone === own.id)?.name, 'blocks')
      } finally {
        rmSync(file, { force: true })
      }
      await task
    }),
  ))

test('fibers that wait are in the answer', () =>
  observed({}, ({ path }) =>
    inZone({ workers: 1 }, (own) =>
      begun(tasksOf(own).fibers, async () => {
        assert.match(
          threadOf(await stacks(path), `${own.id}/0`).fibers ?? '',
          /sleeper: waiting for 600000 ms/,
        )
      }),
    ),
  ))

test('threads that end while they are asked, and that no zone has started', () =>
  observed({}, async ({ path }) => {
    const stuck = new Worker('for (;;);', { eval: true, name: 'stuck' })
    const short = Array.from({ length: 8 }, () => new Worker('setTimeout(() => {}, 20)', { eval: true }))
    let found = await stacks(path)
    // It has to have begun.
    while (!found.threads.some(({ name, frames }) => name === 'stuck' && frames.length > 0))
      found = await stacks(path)
    await Promise.all([stuck, ...short].map((worker) => worker.terminate()))
    assert.equal((await stacks(path)).threads.length, 1)
  }))

test('a program that has changed Error has stacks, and keeps what it has set', () =>
  observed({}, ({ path }) =>
    inZone({ workers: 1 }, async (own) => {
      await own.run(() => {
        Error.stackTraceLimit = 1
        Error.prepareStackTrace = () => {
          throw new Error('mine')
        }
      })
      await begun(tasksOf(own).loop, async () => {
        assert.match(frameOf(threadOf(await stacks(path), `${own.id}/0`).frames), /loop/)
      })
      assert.deepEqual(await own.run(() => [Error.stackTraceLimit, typeof Error.prepareStackTrace]), [
        1,
        'function',
      ])
      await own.run(() => void Object.freeze(Error))
      await begun(tasksOf(own).loop, async () => {
        const problem = (await stacks(path)).threads.find(({ name }) => name === `${own.id}/0`)?.problem
        assert.equal(problem?.code, 'OBSERVE_FAILED')
      })
    }),
  ))

test('a cancelled task that goes on is marked', () =>
  observed({}, ({ path }) =>
    inZone({ workers: 1, graceMs: 60_000 }, async (own) => {
      const stop = new AbortController()
      const call = own.with({ signal: stop.signal }) as unknown as Zone
      await begun(
        (words) =>
          tasksOf(call)
            .loop(words)
            .catch(() => {}),
        async () => {
          stop.abort()
          const isMarked = async (): Promise<boolean> =>
            (await stacks(path)).tasks.find(({ zone }) => zone === own.id)?.isCancelled === true
          await until(isMarked)
        },
      )
    }),
  ))
