/**
 * Kills the processes of an isolated zone while tasks are in flight, and counts what becomes of every
 * promise.
 *
 * A program of its own, run by processes.test.mjs and, longer, by `npm run check:long`:
 *   node test/stress/processes.mjs [kills] [seed]
 * It prints one line of JSON, as kills.mjs does. Killed are processes at random moments, by SIGKILL from
 * outside and by tasks that crash.
 */
import { readFileSync } from 'node:fs'
import { zone } from 'corespun/zone'
import { eventually, fds, numbers, threads } from './process.mjs'

const WORKERS = 2
const IN_FLIGHT = 24
const ALLOWED = new Set(['done', 'WORKER_DIED', 'TASK_TIMEOUT', 'AbortError', 'E_OWN'])

const [kills, seed] = [Number(process.argv[2] ?? 20), Number(process.argv[3] ?? Date.now() % 1_000_000)]
const random = numbers(seed)

const children = () =>
  readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').split(' ').filter(Boolean)

/** Returns its argument, not that of another task. */
const echo = async (own, sent, task) => {
  const got = await task(own, sent)
  const isSame = sent instanceof Uint8Array ? Buffer.compare(got, sent) === 0 : got === sent
  if (!isSame) throw Object.assign(new Error(), { code: 'WRONG_VALUE' })
}
const once = (own, sent) => own.run((x) => x, sent)
const later = (own, sent) => own.run((x) => new Promise((resolve) => setTimeout(resolve, 2, x)), sent)

const KINDS = [
  ...Array(20).fill((own) => echo(own, random(1_000_000), once)),
  ...Array(6).fill((own) => echo(own, random(1_000_000), later)),
  ...Array(3).fill((own) => echo(own, new Uint8Array(random(400_000)).fill(random(256)), once)),
  ...Array(2).fill((own) => own.execute((x) => x, [1], { signal: AbortSignal.timeout(random(4)) })),
  (own) =>
    own.run(() => {
      throw Object.assign(new Error('own'), { code: 'E_OWN' })
    }),
]
const CRASHES = [
  () => process.kill(process.pid, 'SIGSEGV'),
  () => process.exit(7),
  () => process.reallyExit(0),
  () => process.kill(process.pid, 'SIGKILL'),
]

const tally = { made: 0, ends: {} }
let died = 0

async function settle(made) {
  tally.made++
  const how = await made.then(
    () => 'done',
    (error) =>
      error.name === 'AbortError' || error.name === 'TimeoutError'
        ? 'AbortError'
        : (error.code ?? String(error)),
  )
  tally.ends[how] = (tally.ends[how] ?? 0) + 1
}

/** One zone, until `deaths` of its processes have died. */
async function round(deaths) {
  const own = zone.create('processes', {
    isolation: 'process',
    workers: WORKERS,
    tasksPerWorkerMax: 1 + random(4),
    graceMs: 5,
  })
  let isOver = false
  const lane = async () => {
    while (!isOver) {
      await settle(KINDS[random(KINDS.length)](own))
      // Refusals take no turn of the loop.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const lanes = Array.from({ length: IN_FLIGHT }, lane)
  for (const target = died + deaths; died < target;) {
    // One that is ready: three in a row that are not break the zone.
    const pid = await own.run(() => process.pid).catch(() => 0)
    await new Promise((resolve) => setTimeout(resolve, random(20)))
    if (random(3) === 0) {
      await settle(own.run(CRASHES[random(CRASHES.length)]))
      died++
    } else if (children().includes(String(pid))) {
      process.kill(pid, 'SIGKILL')
      died++
      await eventually(() => !children().includes(String(pid)))
    }
  }
  isOver = true
  await Promise.all(lanes)
  await own.close()
}

await round(1)
died = 0
await eventually(() => children().length === 0)
await eventually(() => threads() <= 1, 500)
const begun = { threads: threads(), fds: fds() }
const rss = []
for (let begun = 0; begun < kills; begun += 10) {
  await round(Math.min(10, kills - begun))
  globalThis.gc?.()
  rss.push(Math.round(process.memoryUsage.rss() / 1024 ** 2))
}
await eventually(() => threads() <= begun.threads)
await eventually(() => fds() <= begun.fds)
const left = {
  threads: Math.max(0, threads() - begun.threads),
  fds: Math.max(0, fds() - begun.fds),
  processes: children().length,
}
const wrong = Object.keys(tally.ends).filter((how) => !ALLOWED.has(how))
console.log(JSON.stringify({ seed, kills, died, made: tally.made, ends: tally.ends, wrong, left, rss }))
