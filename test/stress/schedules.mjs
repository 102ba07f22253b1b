/**
 * Random schedules of submit, cancel, crash, out-of-memory, process.exit and close, from several threads.
 *
 * A program of its own, run by schedules.test.mjs and, whole, by `npm run check:long`:
 *   node --expose-gc test/stress/schedules.mjs [count] [seed] [secondsMax]
 * Schedule n has the seed `seed + n`, so any of them is replayed alone: `schedules.mjs 1 <its seed>`. The
 * seed decides the zone, what each thread does and when it ends; the interleaving is the machine's. After
 * each schedule it must hold: every call has settled, with its own value or an error that it may have; no
 * task has run twice, none that was refused has run; the zone has ended; threads, descriptors and handles are
 * back; so is memory. It prints one line of JSON, and the schedule under way on stderr.
 *
 * CORESPUN_FAULT plants one of FAULTS in each schedule: the check that is meant for it must fail.
 */
import { openSync } from 'node:fs'
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads'
import { zone } from 'corespun/zone'
import { eventually, fds, numbers, threads } from './process.mjs'
import { CELLS, KINDS, perform, someKind } from './schedule-tasks.mjs'

const ID = 'schedule'
const MODULE = import.meta.resolve('corespun/zone')
const EXECUTORS = ['fixed', 'work-stealing', 'blocking', 'cached']
const FAULT = process.env.CORESPUN_FAULT ?? ''
/** A call that has not settled after so long is lost: cancelling and closing take parts of a second. */
const PATIENCE_MS = FAULT === '' ? 60_000 : 1_000
/** How long a schedule with a call that nobody cancels goes on before its zone is closed. */
const ENDLESS_MS = 600
const LINGER_MS = FAULT === '' ? 30_000 : 500
/** Schedules before anything is compared: what a process opens once and keeps is not what is looked for. */
const WARM_UP = FAULT === '' ? 4 : 1
/** V8 keeps what it had; of the process' memory, arenas of the allocator and freed pages of dead heaps. */
const HEAP_GROWTH_MB_MAX = 12
const RSS_GROWTH_MB_MAX = 150
const MEBI = 1024 ** 2

/** Faults that a check must find. */
const FAULTS = {
  lost: ({ calls }) => calls.push({ index: 0, kind: 'echo', end: new Promise(() => {}) }),
  twice: ({ cells }) => Atomics.add(cells, 0, 2),
  value: ({ calls }) => calls.push({ index: 0, kind: 'echo', end: lied() }),
  thread: () => new Worker('setInterval(() => {}, 1000)', { eval: true }).unref(),
  handle: () => setInterval(() => {}, 1000),
  fd: () => openSync('/proc/self/status'),
  heap: () => keep(() => Array.from({ length: 500_000 }, (_, n) => ({ n }))),
  rss: () => keep(() => Buffer.alloc(200 * MEBI, 1)),
  crash: () => process.abort(),
  hang: () => {
    for (;;);
  },
  queued: () => {}, // the counts of another zone are looked at
}
const QUEUED = { stats: () => ({ waiting: 1, waitingBytes: 0, running: 0, workers: 0 }) }
const kept = []
const keep = (make) => void kept.push(make(), make())

/** A call of the zone's that returns another's number. */
async function lied() {
  const step = { kind: 'echo', index: 1, number: 1 }
  const own = { execute: async () => ({ value: 2 }) }
  return perform(own, step, new Int32Array(2 * CELLS).fill(1), true)
}

/** What happens in one schedule, all of it plain data. */
function plan(seed) {
  const random = numbers(seed)
  const executor = EXECUTORS[random(EXECUTORS.length)]
  const grows = executor === 'blocking' || executor === 'cached'
  const settings = {
    executor,
    ...(grows ? { workers: { max: 1 + random(3), idleMs: 1 + random(20) } } : { workers: 1 + random(2) }),
    tasksPerWorkerMax: random(2) === 0 ? 1 : 2 + random(7),
    tasksMax: random(6) === 0 ? 8 + random(16) : 1000,
    graceMs: random(30),
    spinUs: random(2) === 0 ? 0 : 50,
    heapMbMax: 16 + random(16),
  }
  let [index, endless] = [0, false]
  const step = () => {
    const kind = someKind(random)
    const { stubborn = false } = KINDS[kind]
    const givenUp = stubborn ? random(24) > 0 : random(6) === 0
    const when = random(30)
    const limits = !givenUp ? {} : random(2) === 0 ? { timeoutMs: when } : { abortMs: when }
    // The zone's end is the only end of this one.
    endless ||= stubborn && !givenUp
    return { kind, index: index++, number: random(1_000_000), pause: random(6), module: MODULE, ...limits }
  }
  const actors = Array.from({ length: 2 + random(3) }, (_, n) => ({
    steps: Array.from({ length: 4 + random(24) }, step),
    // Threads that end in the midst of it take their promises with them, and nobody else's.
    end: n === 0 ? 'waits' : ['waits', 'waits', 'waits', 'waits', 'exits', 'terminated'][random(6)],
    endMs: random(60),
    closes: random(12) === 0,
  }))
  // What a thread that has ended would have given up, nobody does.
  endless ||= actors.some(({ end }) => end !== 'waits')
  const closing = { closeMs: random(200), closesAfterMs: random(4) === 0 ? random(100) : -1 }
  return { seed, settings, actors, endless, warm: random(4) > 0, ...closing }
}

/** What one thread does: its steps, each call not waited for. Returns its calls. */
async function act({ settings, actors }, number, own, cells) {
  const { steps, closes } = actors[number]
  const kinds = actors.flatMap((actor) => actor.steps.map(({ kind }) => KINDS[kind]))
  // Where a worker has one task at a time, nobody dies of another's.
  const alone = settings.tasksPerWorkerMax === 1 && !kinds.some(({ shares }) => shares)
  const calls = []
  for (const step of steps) {
    if (step.pause === 1) await new Promise((resolve) => setImmediate(resolve))
    if (step.pause === 2) await new Promise((resolve) => setTimeout(resolve, 1))
    calls.push({ ...step, end: perform(own, step, cells, alone) })
  }
  if (closes) void own.close({ timeoutMs: 50 })
  return calls
}

if (isMainThread) {
  const [count = 1000, seed = Date.now() % 1_000_000, secondsMax = Infinity] = process.argv
    .slice(2)
    .map(Number)
  await main(count, seed, secondsMax)
} else await actor(workerData)

/** A submitting thread. */
async function actor({ plan, number, cells }) {
  let own
  try {
    own = zone.get(ID)
  } catch (error) {
    if (error.code !== 'ZONE_UNKNOWN') throw error
    return parentPort.postMessage([]) // it has closed already
  }
  const calls = await act(plan, number, own, cells)
  if (plan.actors[number].end === 'exits') process.exit()
  parentPort.postMessage(await Promise.all(calls.map(({ end }) => end)))
}

async function main(count, seed, secondsMax) {
  const startedMs = performance.now()
  const tally = { ends: {}, calls: 0, rss: [] }
  for (let n = 0; n < WARM_UP; n++) await schedule(plan(1 + n), tally, '')
  await eventually(() => threads() <= 1, 500)
  const before = measured()
  tally.rss = []
  let ran = 0
  for (; ran < count && performance.now() - startedMs < secondsMax * 1000; ran++) {
    const at = seed + ran
    process.stderr.write(`schedule ${at}\n`)
    const problems = [...(await schedule(plan(at), tally, FAULT)), ...(await leftOver(before, tally))]
    if (problems.length === 0) continue
    const replay = `node --expose-gc test/stress/schedules.mjs 1 ${at}`
    console.log(JSON.stringify({ seed: at, problems: problems.slice(0, 20), replay }))
    process.exit(1) // what was not settled or let go would keep it
  }
  const seconds = Math.round((performance.now() - startedMs) / 1000)
  console.log(JSON.stringify({ seed, ran, seconds, calls: tally.calls, ends: tally.ends, rss: tally.rss }))
}

/** Run one; returns what is wrong. */
async function schedule(what, tally, fault) {
  const { actors, settings, endless, warm, closeMs, closesAfterMs } = what
  const steps = actors.flatMap((each) => each.steps)
  const cells = new Int32Array(new SharedArrayBuffer(4 * CELLS * steps.length))
  const own = zone.create(ID, settings)
  if (warm) await own.run(() => {})
  const others = actors.slice(1).map((_, n) => follow(what, n + 1, cells))
  const early = closesAfterMs >= 0 && setTimeout(() => void own.close({ timeoutMs: closeMs }), closesAfterMs)
  const calls = await act(what, 0, own, cells)
  FAULTS[fault]?.({ calls, cells })
  const problems = []
  // All settle by themselves, but for what only the zone's end can end.
  const mine = Promise.all(calls.map(({ end }) => end))
  const all = Promise.all([mine, ...others.map((other) => other.ends)])
  if ((await within(all, endless ? ENDLESS_MS : PATIENCE_MS)) === undefined && !endless)
    problems.push('not settled before the zone was closed', ...(await unsettled(calls)))
  if ((await within(own.close({ timeoutMs: closeMs }).then(() => true))) !== true)
    problems.push('close has not ended')
  clearTimeout(early)
  const settled = await within(mine)
  if (settled === undefined) problems.push(...(await unsettled(calls)))
  const ends = [settled ?? []]
  for (const [n, other] of others.entries()) {
    const end = await within(other.ends)
    if (end === undefined) problems.push(`thread ${n + 1} has not ended: a call of it, or a handle, is left`)
    else if (typeof end === 'string') problems.push(`thread ${n + 1}: ${end}`)
    else ends.push(end)
  }
  for (const { index, how, wrong } of ends.flat()) {
    tally.calls++
    tally.ends[how] = (tally.ends[how] ?? 0) + 1
    if (wrong !== '') problems.push(`call ${index}, ${JSON.stringify(steps[index])}, ${wrong}`)
  }
  const often = [...cells.keys()].filter((at) => cells[at] > 1)
  problems.push(...often.map((at) => `task ${Math.floor(at / CELLS)} has run ${cells[at]} times`))
  return [...problems, ...zoneLeft(fault === 'queued' ? QUEUED : own)]
}

/** A submitting thread, and how its calls end; an empty list for one that ended before. */
function follow(what, number, cells) {
  const { end, endMs } = what.actors[number]
  const worker = new Worker(new URL(import.meta.url), { workerData: { plan: what, number, cells } })
  const ends = new Promise((resolve) => {
    let reported = []
    worker.once('message', (ends) => (reported = ends))
    worker.once('error', (error) => resolve(`it failed: ${error.stack ?? error}`))
    // It must end by itself: a thread with a handle left would not.
    worker.once('exit', () => resolve(reported))
  })
  if (end === 'terminated') setTimeout(() => void worker.terminate(), endMs)
  return { ends }
}

/** What a promise resolves to in time; undefined if it is late. */
async function within(promise, ms = PATIENCE_MS) {
  let timer
  const late = new Promise((resolve) => (timer = setTimeout(resolve, ms)))
  const given = await Promise.race([promise, late])
  clearTimeout(timer)
  return given
}

async function unsettled(calls) {
  const pending = Symbol('pending')
  const states = await Promise.all(calls.map(({ end }) => Promise.race([end, Promise.resolve(pending)])))
  const lost = calls.filter((_, n) => states[n] === pending)
  return lost.map(({ end: _, ...step }) => `never settled: ${JSON.stringify(step)}`)
}

/** The zone's counts are those of one that has ended, and its name is free. */
function zoneLeft(own) {
  const { waiting, waitingBytes, running, workers } = own.stats()
  const left = { waiting, waitingBytes, running, workers }
  const problems = Object.values(left).some((count) => count !== 0)
    ? [`the zone has ${JSON.stringify(left)}`]
    : []
  try {
    zone.get(ID)
    problems.push('the zone can still be found')
  } catch (error) {
    if (error.code !== 'ZONE_UNKNOWN') throw error
  }
  return problems
}

function measured() {
  globalThis.gc?.()
  const { heapUsed, external, rss } = process.memoryUsage()
  return {
    threads: threads(),
    fds: fds(),
    handles: process.getActiveResourcesInfo().length,
    heapMb: (heapUsed + external) / MEBI,
    rssMb: rss / MEBI,
  }
}

/** What is not back as it was. */
async function leftOver(before, tally) {
  let now = measured()
  const counts = ['threads', 'fds', 'handles']
  const grown = () => counts.filter((name) => now[name] > before[name])
  const heapIsBack = () => now.heapMb <= before.heapMb + HEAP_GROWTH_MB_MAX
  // The engine unmaps what threads had when it comes to it.
  const rssIsBack = () => now.rssMb <= before.rssMb + RSS_GROWTH_MB_MAX
  const isBack = () => ((now = measured()), grown().length === 0 && heapIsBack() && rssIsBack())
  await eventually(isBack, LINGER_MS)
  tally.rss.push(Math.round(now.rssMb))
  const problems = grown().map((name) => `${name}: ${now[name]}, there were ${before[name]}`)
  if (!heapIsBack()) problems.push(`heap: ${now.heapMb} MB, there were ${before.heapMb}`)
  if (!rssIsBack()) problems.push(`rss: ${now.rssMb} MB after ${before.rssMb}`)
  return problems
}
