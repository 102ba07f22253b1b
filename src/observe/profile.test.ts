/**
 * Profiles of threads that are busy, stuck or start later, and the labels of what they run.
 * How samples become files is in src/cli/observe/formats.test.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { until } from '../base/wait.test.support.ts'
// oxlint-disable-next-line no-restricted-imports -- arrows are above, and labelled
import { exported, lift } from '../arrow/index.ts'
import { here } from '../zone/internal.ts'
import { type LabelTimes, type ThreadProfile, ask, findProcess } from './internal.ts'
import { answerOf, inZone, observed } from './observe.test.support.ts'
import { burnsFor } from './stacks.test.support.ts'

const SUPPORT = new URL('./stacks.test.support.js', import.meta.url)
type Support = typeof import('./stacks.test.support.ts')
const timeoutMs = 90_000

/** Profile this process, of whatever name, while `body` runs. */
async function profiled(params: object, body: (stop: () => void) => Promise<void>): Promise<ThreadProfile[]> {
  const stop = new AbortController()
  const [own] = await findProcess(String(process.pid))
  const answer = ask(own, 'profile', params, { timeoutMs, stop: stop.signal })
  await body(() => stop.abort())
  return ((await answer) as { threads: ThreadProfile[] }).threads
}

const functionsOf = ({ cpu }: ThreadProfile): string[] =>
  (cpu?.nodes ?? []).map(({ callFrame }) => callFrame.functionName)

function threadOf(threads: readonly ThreadProfile[], name: string): ThreadProfile {
  return threads.find((thread) => thread.name === name) ?? assert.fail(`no thread is called ${name}`)
}

/** The function that most samples are in. */
function hottest({ cpu }: ThreadProfile): string | undefined {
  const counts = new Map<number, number>()
  for (const id of cpu?.samples ?? []) counts.set(id, (counts.get(id) ?? 0) + 1)
  const [most] = [...counts].sort(([, count], [, other]) => other - count)[0] ?? []
  return cpu?.nodes.find(({ id }) => id === most)?.callFrame.functionName
}

/** How long each label lasted, in ms, of a thread whose last change is 'none'. */
function spans({ names, times, labels }: LabelTimes): Map<string, number> {
  const sums = new Map<string, number>()
  for (const [index, time] of times.slice(0, -1).entries()) {
    const name = names[labels[index]]
    sums.set(name, (sums.get(name) ?? 0) + (times[index + 1] - time) / 1000)
  }
  return sums
}

test('tasks have labels, also behind their waits, and nothing is left afterwards', () =>
  observed({}, () =>
    inZone({ workers: 1, tasksPerWorkerMax: 4 }, async (own) => {
      const tasks = own.module<Support>(SUPPORT)
      await tasks.computes(1)
      const threads = await profiled({ seconds: 600 }, async (stop) => {
        await until(() => tasks.isLabelled())
        await tasks.computes(150)
        await Promise.all([tasks.computes(50), tasks.computes(50)])
        stop()
      })
      const worker = threadOf(threads, `${own.id}/0`)
      // V8 may have inlined the function into its caller.
      assert.match(hottest(worker) ?? '', /^(burn|computes)$/)
      const computedMs = spans(worker.labels!).get(`${own.id} computes`) ?? 0
      assert.ok(computedMs >= 490, `${computedMs} ms`)
      assert.equal(threadOf(threads, 'the main thread').problem, undefined)
      assert.equal(await tasks.isLabelled(), false)
      assert.equal(here.labels, undefined)
    }),
  ))

test('arrows in a zone have the names of their stages, from the reading of their inputs on', () =>
  observed({}, () =>
    inZone({ workers: 1 }, async (own) => {
      const tasks = own.module<Support>(SUPPORT)
      const text = 'x'.repeat(1_000_000)
      const burns = exported(SUPPORT.href, burnsFor)
      const named = lift((text: string) => text.length)
        .andThen(lift(burns))
        .named('own name')
        .on(own)
      const unnamed = lift(burns).on(own)
      // The first run makes the arrow in the worker.
      for (const arrow of [named.run(text), unnamed.run(1)]) await arrow
      const threads = await profiled({ seconds: 600 }, async (stop) => {
        await until(() => tasks.isLabelled())
        await named.run(text)
        await unnamed.run(20)
        await named.run(text)
        stop()
      })
      const found = spans(threadOf(threads, `${own.id}/0`).labels!)
      const ofArrows = [...found].filter(([name]) => /stage|runArrow/.test(name))
      assert.deepEqual(ofArrows.map(([name]) => name).sort(), ['stage burnsFor', 'stage own name'])
    }),
  ))

test('a thread in an endless loop has a profile and the label of its task', () =>
  observed({}, () =>
    inZone({ workers: 1 }, async (own) => {
      const words = new SharedArrayBuffer(8)
      const flag = new Int32Array(words)
      const task = own.module<Support>(SUPPORT).loop(words)
      await until(() => Atomics.load(flag, 1) === 1)
      const threads = await profiled({ seconds: 1 }, async () => {})
      Atomics.store(flag, 0, 1)
      await task
      const worker = threadOf(threads, `${own.id}/0`)
      assert.deepEqual(
        [worker.first, worker.labels, worker.problem],
        [`${own.id} loop`, undefined, undefined],
      )
      // V8 has inlined the function before the profile began.
      assert.ok(functionsOf(worker).some((name) => name === 'loop' || name === 'invoke'))
      assert.equal(await own.module<Support>(SUPPORT).isLabelled(), false)
    }),
  ))

test('threads that start and end meanwhile are in it', () =>
  observed({}, async () => {
    const started: Worker[] = []
    const code = 'const end = Date.now() + 200; while (Date.now() < end); setInterval(() => {}, 1000)'
    const threads = await profiled({ seconds: 600 }, async (stop) => {
      started.push(
        new Worker(code, { eval: true, name: 'later' }),
        new Worker('', { eval: true, name: 'short' }),
      )
      const [own] = await findProcess(String(process.pid))
      const isBusy = async (): Promise<boolean> => {
        const { threads } = (await answerOf(own.path, 'stacks')).result as {
          threads: { name: string; frames: [] }[]
        }
        return threads.some(({ name, frames }) => name === 'later' && frames.length === 0)
      }
      await until(isBusy)
      stop()
    })
    await Promise.all(started.map((worker) => worker.terminate()))
    assert.equal(threadOf(threads, 'later').problem, undefined)
  }))

test('one profile at a time; a client that leaves ends its own', () =>
  observed({}, async () => {
    await profiled({ seconds: 600 }, async (stop) => {
      const second = profiled({ seconds: 1 }, async () => {})
      await assert.rejects(second, { code: 'OBSERVE_BUSY', facts: { limit: 'one profile' } })
      stop()
    })
    const [own] = await findProcess(String(process.pid))
    const left = ask(own, 'profile', { seconds: 600 }, { timeoutMs: 100 })
    await assert.rejects(left, { code: 'OBSERVE_CUT' })
    const isFree = async (): Promise<boolean> =>
      ask(own, 'profile', { seconds: 1 }, { timeoutMs }).then(
        () => true,
        () => false,
      )
    await until(isFree)
  }))

test('allocations by function', () =>
  observed({}, async () => {
    const kept: unknown[] = []
    const allocates = (): void => {
      for (let index = 0; index < 200_000; index++) kept.push({ index })
    }
    const threads = await profiled({ seconds: 600, kind: 'heap' }, async (stop) => {
      await until(async () => (allocates(), kept.length > 2_000_000))
      stop()
    })
    const main = threadOf(threads, 'the main thread')
    assert.match(JSON.stringify(main.heap), /"functionName":"allocates"/)
    assert.equal(main.cpu, undefined)
  }))
