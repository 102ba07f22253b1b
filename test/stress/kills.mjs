/**
 * Kills workers while several threads have tasks in flight, and counts what becomes of every promise.
 *
 * A program of its own, run by kills.test.mjs and, longer, by `npm run check:long`:
 *   node test/stress/kills.mjs [kills] [seed]
 * It prints one line of JSON. The seed decides what is submitted and how each worker dies; threads make the
 * order of events their own, so a seed repeats the load, not the interleaving. CORESPUN_FAULT plants one of
 * FAULTS, which a check must find.
 */
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads'
import { zone } from 'corespun/zone'
import { eventually, fds, numbers, threads } from './process.mjs'

const THREADS = 3
const IN_FLIGHT = 40
const FAULT = process.env.CORESPUN_FAULT ?? ''
/** A call that has not settled so long after the load has ended is lost. */
const LOST_MS = FAULT === 'lost' ? 1000 : 60_000
/** A zone whose tasks have all been cancelled closes at once; one that needs this long has kept some. */
const CLOSE_MS = 60_000
/** Most counted tasks of one thread in a round; those beyond are echoes. */
const COUNTED_MAX = 1 << 16
/** What a call may end with; anything else is a failure of the test. */
const ALLOWED = new Set(['done', 'WORKER_DIED', 'TASK_TIMEOUT', 'AbortError', 'ZONE_FULL', 'E_OWN'])

/** Every way in which a task kills its worker. */
const DEATHS = [
  () => process.exit(1),
  () => {
    setImmediate(() => {
      throw new Error('uncaught')
    })
    return new Promise(() => {})
  },
  async () => {
    void Promise.reject(new Error('unhandled'))
    await new Promise(() => {})
  },
  (bytes) => {
    const view = new Uint8Array(bytes)
    view.fill(1)
    process.reallyExit(2)
  },
]

const EXECUTORS = ['fixed', 'work-stealing', 'blocking', 'cached']

/** A task that forks some, one of which it aborts, and waits for them. */
const forking = (own, random) =>
  own.run(
    async (module, count) => {
      const { zone } = await import(module)
      const me = zone.current
      const aborted = me.execute((x) => x, [1], { signal: AbortSignal.timeout(1) })
      const forked = Array.from({ length: count }, (_, index) => me.run((x) => x, index))
      await Promise.allSettled([aborted, ...forked])
    },
    import.meta.resolve('corespun/zone'),
    random(6),
  )

const stubborn = (own, random) => own.execute(() => new Promise(() => {}), [], { timeoutMs: 1 + random(10) })
/** Returns its argument, not that of another task. */
const echo = (own, random) => {
  const sent = random(1_000_000)
  const check = (got) => {
    if (got !== sent || FAULT === 'value') throw Object.assign(new Error(), { code: 'WRONG_VALUE' })
  }
  return own.run((x) => x, sent).then(check)
}

/** Counts its runs in a cell of its own. */
const counted = (own, random, tally) => {
  const at = tally.counted.length
  if (at === COUNTED_MAX) return echo(own, random)
  const made = own.run((cells, at) => Atomics.add(cells, at, 1), tally.cells, at)
  tally.counted.push(
    made.then(
      (before) => (before === 0 ? 'done' : 'again'),
      () => 'failed',
    ),
  )
  return made
}

/** What is submitted; one in forty is stubborn and costs its worker. */
const KINDS = [
  ...Array(4).fill(forking),
  ...Array(24).fill(echo),
  ...Array(4).fill((own, random) =>
    own.run((bytes) => bytes, new Uint8Array(random(3) === 0 ? 300_000 : random(5_000))),
  ),
  ...Array(3).fill((own, random) =>
    own.run((ms) => new Promise((resolve) => setTimeout(resolve, ms)), random(3)),
  ),
  (own, random) => {
    const nested = function () {
      return new Promise((resolve) => this.signal.addEventListener('abort', resolve))
    }
    return own.execute(nested, [], { timeoutMs: 1 + random(10) })
  },
  stubborn,
  ...Array(3).fill((own, random) => own.execute((x) => x, [1], { signal: AbortSignal.timeout(random(4)) })),
  (own) =>
    own.run(() => {
      throw Object.assign(new Error('own'), { code: 'E_OWN' })
    }),
  ...Array(3).fill(counted),
]

/** One call of the load. */
async function call(own, random, tally) {
  const made = KINDS[random(KINDS.length)](own, random, tally)
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

async function load(id, seed, until) {
  const own = zone.get(id)
  const random = numbers(seed)
  const cells = new Int32Array(new SharedArrayBuffer(4 * COUNTED_MAX))
  const tally = { made: 0, ends: {}, counted: [], cells }
  FAULTS[FAULT]?.(tally)
  const lane = async () => {
    while (!until()) await call(own, random, tally)
  }
  const lanes = Promise.all(Array.from({ length: IN_FLIGHT }, lane))
  while (!until()) await new Promise((resolve) => setTimeout(resolve, 2))
  let timer
  await Promise.race([lanes, new Promise((resolve) => (timer = setTimeout(resolve, LOST_MS)))])
  clearTimeout(timer)
  const { made, ends } = tally
  const settled = Object.values(ends).reduce((all, count) => all + count, 0)
  if (settled < made) ends.LOST = made - settled
  else ends.RAN_WRONG = await ranWrong(tally)
  if (ends.RAN_WRONG === 0) delete ends.RAN_WRONG
  return { made, ends }
}

/** How many counted tasks have not run once: done ones must have, others at most. */
async function ranWrong({ counted, cells }) {
  const ends = await Promise.all(counted)
  return ends.filter((end, at) => end === 'again' || cells[at] > 1 || (end === 'done' && cells[at] !== 1))
    .length
}

/** What a check must find; `value` is planted in `echo`. */
const FAULTS = {
  lost: (tally) => tally.made++,
  twice: ({ cells }) => Atomics.add(cells, 0, 1),
}

if (isMainThread) await main(Number(process.argv[2] ?? 60), Number(process.argv[3] ?? Date.now() % 1_000_000))
else {
  const { id, seed, stop } = workerData
  parentPort.postMessage(await load(id, seed, () => Atomics.load(stop, 0) === 1))
}

async function main(kills, seed) {
  const random = numbers(seed)
  // What a process opens once and keeps is not what is looked for.
  await round(2, random)
  await eventually(() => threads() <= 1, 500)
  const begun = { threads: threads(), fds: fds() }
  const rss = []
  const warmUp = Math.ceil(kills / 3)
  let tally = { made: 0, ends: {}, terminated: 0 }
  let died = 0
  while (died < kills) {
    const part = await round(Math.min(20, warmUp, kills - died), random)
    died += part.died
    if (process.stderr.isTTY || process.env.CORESPUN_LOUD) console.error(died, part.made)
    tally = sum(tally, part)
    globalThis.gc?.()
    if (died >= warmUp) rss.push(Math.round(process.memoryUsage.rss() / 1024 ** 2))
  }
  const wrong = Object.keys(tally.ends).filter((how) => !ALLOWED.has(how))
  await eventually(() => threads() <= begun.threads)
  await eventually(() => fds() <= begun.fds)
  const left = { threads: Math.max(0, threads() - begun.threads), fds: Math.max(0, fds() - begun.fds) }
  console.log(JSON.stringify({ seed, kills, died, made: tally.made, ends: tally.ends, wrong, left, rss }))
}

/** One zone and its threads, until `kills` of its workers have died. */
async function round(kills, random) {
  const id = 'kills'
  const executor = EXECUTORS[random(EXECUTORS.length)]
  const grows = executor === 'blocking' || executor === 'cached'
  const own = zone.create(id, {
    executor,
    ...(grows ? { workers: { max: 3, idleMs: 5 } } : { workers: 2 }),
    graceMs: 5,
    tasksMax: 5_000,
    tasksPerWorkerMax: 1 + 7 * random(2),
  })
  const stop = new Int32Array(new SharedArrayBuffer(4))
  const threads = Array.from({ length: THREADS }, () => {
    const worker = new Worker(new URL(import.meta.url), { workerData: { id, seed: random(2 ** 31), stop } })
    const end = new Promise((resolve, reject) => {
      worker
        .once('message', resolve)
        .once('error', reject)
        .once('exit', () => resolve(undefined))
    })
    return { worker, end }
  })
  const mine = load(id, random(2 ** 31), () => Atomics.load(stop, 0) === 1)
  let died = 0
  while (died < kills) {
    const death = DEATHS[random(DEATHS.length)]
    await own.run(death, new ArrayBuffer(random(400_000))).catch((error) => {
      if (error.code === 'WORKER_DIED') died++
    })
  }
  // One of the submitting threads is ended in the midst of it: its promises end with it, nobody else's do.
  await threads[0].worker.terminate()
  Atomics.store(stop, 0, 1)
  const tallies = [await mine, ...(await Promise.all(threads.slice(1).map(({ end }) => end)))]
  await Promise.all(threads.map(({ worker }) => worker.terminate()))
  const closing = performance.now()
  await own.close({ timeoutMs: CLOSE_MS })
  if (performance.now() - closing >= CLOSE_MS) tallies.push({ made: 1, ends: { CLOSED_BY_TIMEOUT: 1 } })
  return { died, ...tallies.reduce(sum) }
}

function sum(one, other) {
  const ends = { ...one.ends }
  for (const [how, count] of Object.entries(other.ends)) ends[how] = (ends[how] ?? 0) + count
  return { made: one.made + other.made, ends }
}
