/**
 * Workers that are processes have control sockets of their own, with the name of the process that has started
 * them, whether they start before or after that is observed.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../base/wait.test.support.ts'
import { type Zone, zone } from '../zone/index.ts'
import { type RunningTask, type ThreadProfile, type ThreadStack, ask, findProcess } from './internal.ts'
import { answerOf, inZone, observed } from './observe.test.support.ts'
import { controlSockets } from './sockets.ts'

const hasProcesses = process.platform !== 'win32'
const SUPPORT = new URL('./stacks.test.support.js', import.meta.url)
const timeoutMs = 30_000

interface Stacks {
  readonly threads: readonly ThreadStack[]
  readonly tasks: readonly RunningTask[]
}

/** Run `look` while a task of the zone never returns. */
async function stuck(own: Zone, look: (pid: number) => Promise<void>): Promise<void> {
  const pid = await own.run(() => process.pid)
  // Once it is stuck it cannot open one; those of workers before it may still be there.
  await until(async () => (await findProcess('parent')).some((each) => each.pid === pid))
  const stop = new AbortController()
  const call = own.with({ signal: stop.signal }) as unknown as Zone
  const task = call.module<typeof import('./stacks.test.support.ts')>(SUPPORT).endless()
  try {
    await until(() => own.stats().running === 1)
    await look(pid)
  } finally {
    stop.abort()
    await task.catch(() => {})
  }
}

test(
  'processes that start before and after, and are stuck, have stacks and profiles',
  { skip: !hasProcesses },
  () =>
    inZone({ workers: 1, isolation: 'process', graceMs: 0 }, async (before) => {
      await before.run(() => 1)
      await observed({ name: 'parent' }, async ({ path }) => {
        const after = zone.create('after', { workers: 1, isolation: 'process', graceMs: 0 })
        for (const own of [before, after])
          await stuck(own, async (pid) => {
            const child = (await findProcess('parent')).find((each) => each.pid === pid)
            assert.deepEqual(child && [child.name, child.parent], ['parent', process.pid])
            assert.equal((await findProcess(String(pid)))[0].pid, pid)
            let main!: ThreadStack
            // It loads the module first.
            const looked = async (): Promise<boolean> => {
              ;[main] = ((await ask(child!, 'stacks', {}, { timeoutMs })) as Stacks).threads
              return main.frames.some((frame) => frame.includes('endless'))
            }
            await until(looked)
            assert.equal(main.worker, `${own.id}/0`)
            const { tasks } = (await answerOf(path, 'stacks')).result as Stacks
            const task = tasks.find(({ worker }) => worker === main.worker)
            assert.deepEqual(task && [task.name, task.caller], ['endless', 'the main thread'])
            if (own === before) return
            const profiled = await ask(child!, 'profile', { seconds: 1 }, { timeoutMs })
            const [profile] = (profiled as { threads: ThreadProfile[] }).threads
            assert.equal(profile.first, `${own.id} endless`)
            assert.ok(
              profile.cpu?.nodes.some(({ callFrame }) => /^(endless|burn)$/.test(callFrame.functionName)),
            )
            const allowed = await ask(child!, 'control', { action: 'reload' }, { timeoutMs }).catch(
              ({ code }) => code,
            )
            assert.equal(allowed, 'OBSERVE_FORBIDDEN')
          })
        await after.close()
      })
    }).then(() => until(async () => (await controlSockets()).length === 0)),
)

const permits = Number(process.versions.node.split('.')[0]) >= 22

test(
  'a process that may not write runs its tasks without a socket',
  { skip: !hasProcesses || !permits },
  () =>
    observed({ name: 'restricted' }, async () => {
      const execArgv = ['--permission', '--allow-fs-read=*', '--allow-addons']
      await inZone({ workers: 1, isolation: 'process', execArgv }, async (own) => {
        assert.equal(await own.run((n: number) => n + 1, 1), 2)
        assert.equal((await findProcess('restricted')).length, 1)
      })
    }),
)
