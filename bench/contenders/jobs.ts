/**
 * What a contender's process can be told to do: each job measures one slice and checks its answers.
 *
 * Jobs never interpret: they return raw figures of one slice, and the table takes medians over slices. CPU is
 * that of the whole process, all threads, as the kernel counts it.
 */
import { performance } from 'node:perf_hooks'
import { checkAnswer } from '../harness/errors.ts'
import { quantile } from '../harness/stats.ts'
import { timeSlice } from '../harness/timing.ts'
import type { Abandoned, Contender, Pool, PoolSettings } from './contender.ts'
import { churn, crcMany, type CrcInput, mixed, thread } from './work.ts'

/** The ways to call the function that does nothing. */
export type Form = 'named' | 'anonymous' | 'reused'

/** Jobs with their orders and results. */
export interface Jobs {
  open: { order: PoolSettings; result: { ms: number; forms: Form[] } }
  prove: { order: { threads: number }; result: { threads: number } }
  sequential: {
    order: { form: Form; sliceMs: number }
    result: { p50Us: number; p99Us: number; cpuUs: number; calls: number }
  }
  loop: { order: { form: Form; calls: number }; result: { ms: number; cpuUs: number } }
  batch: { order: { form: Form; calls: number }; result: { ms: number; cpuUs: number } }
  firsts: { order: { form: Form; calls: number }; result: { us: number[] } }
  crc: {
    order: CrcInput & { calls: number; expected: number }
    result: { ms: number; cpuMs: number; eachMs: number[] }
  }
  crcSplit: { order: CrcInput & { calls: number; expected: number }; result: { ms: number } }
  crcBesideMain: { order: CrcInput & { expected: number }; result: { ms: number } }
  crcHere: { order: CrcInput & { expected: number }; result: { ms: number; cpuMs: number } }
  mixedHere: { order: { rounds: number; expected: number }; result: { ms: number } }
  mixedThere: { order: { rounds: number; expected: number }; result: { ms: number } }
  memory: { order: { calls: number }; result: { rssMb: number } }
  idle: { order: { ms: number }; result: { cpuUs: number } }
  burst: { order: { calls: number; bursts: number }; result: { us: number } }
  joins: { order: { name: string; input: unknown; expected: unknown }; result: { ms: number } }
  abandon: { order: { graceMs: number }; result: Abandoned }
  skewed: { order: SkewedOrder; result: { p50Us: number; p99Us: number; cheapP99Us: number } }
  hopHere: { order: HopOrder; result: { usPerItem: number; cpuUs: number } }
  hopThere: { order: HopOrder; result: { usPerItem: number; cpuUs: number } }
  close: { order: Record<string, never>; result: { ms: number } }
}

/** Stages with a payload of some bytes, so many in flight. */
export interface HopOrder {
  readonly items: number
  readonly inFlight: number
  readonly turns: number
  readonly bytes: number
}

/** Calls at a steady rate, some of them dear. */
export interface SkewedOrder {
  readonly calls: number
  /** Time between two calls; those that are due are sent together. */
  readonly gapUs: number
  /** Turns of the loop of a cheap one, and how many times that a dear one takes. */
  readonly turns: number
  readonly dearer: number
  /** One in so many is dear, by a fixed draw. */
  readonly oneIn: number
  /** Dear ones fork their work where the pool can. */
  readonly forks: boolean
  /** Make short calls before, until all is compiled. */
  readonly warmsUp: boolean
}

type JobTable = { [Name in keyof Jobs]: (order: Jobs[Name]['order']) => Promise<Jobs[Name]['result']> }

/** The jobs of one contender. */
export function jobsOf(contender: Contender): JobTable {
  let opened: Pool | undefined
  const pool = (): Pool => opened!
  const who = contender.name
  return {
    async open(settings) {
      if (contender.package !== undefined) await import(contender.package)
      const start = performance.now()
      opened = await contender.open(settings)
      await answered(who, opened, opened.nothing)
      return { ms: performance.now() - start, forms: formsOf(opened) }
    },
    prove: ({ threads }) => prove(who, pool(), threads),
    sequential: ({ form, sliceMs }) => sequential(who, pool(), form, sliceMs),
    loop: ({ form, calls }) => oneByOne(who, pool(), form, calls),
    batch: ({ form, calls }) => allAtOnce(who, pool(), form, calls),
    firsts: ({ form, calls }) => firstCalls(who, pool(), form, calls),
    crc: (order) => crcThere(who, pool(), order),
    crcSplit: (order) => crcSplit(who, pool(), order),
    crcBesideMain: (order) => crcBesideMain(who, pool(), order),
    crcHere: async (order) => crcHere(order),
    mixedHere: async ({ rounds, expected }) => timed('mixed', () => mixed({ rounds }), expected),
    mixedThere: ({ rounds, expected }) => mixedThere(who, pool(), rounds, expected),
    memory: ({ calls }) => memory(who, pool(), calls),
    idle: ({ ms }) => idle(ms),
    burst: ({ calls, bursts }) => burst(who, pool(), calls, bursts),
    joins: (order) => joins(who, pool(), order),
    abandon: ({ graceMs }) => pool().abandon!(graceMs),
    skewed: async (order) => {
      if (order.warmsUp) await warmUp(pool(), order.turns, order.forks)
      return skewed(who, pool(), order)
    },
    hopHere: async (order) => hopHere(order),
    hopThere: (order) => hopThere(who, pool(), order),
    async close() {
      const start = performance.now()
      await pool().close()
      return { ms: performance.now() - start }
    },
  }
}

function formsOf(pool: Pool): Form[] {
  return ['named', ...(pool.anonymous ? ['anonymous'] : []), ...(pool.reused ? ['reused'] : [])] as Form[]
}

function callOf(pool: Pool, form: Form): () => PromiseLike<unknown> {
  return { named: pool.nothing, anonymous: pool.anonymous, reused: pool.reused }[form]!
}

async function answered(who: string, pool: Pool, call: () => PromiseLike<unknown>): Promise<void> {
  checkAnswer({ contender: who, work: 'nothing', got: pool.valueOf(await call()), expected: undefined })
}

/** Values pass through, threads are real and as many as asked for. */
async function prove(who: string, pool: Pool, threads: number): Promise<{ threads: number }> {
  const sample = { text: 'päyload', list: [1, 2.5, null, true], inner: { deep: ['x'] } }
  checkAnswer({
    contender: who,
    work: 'echo',
    got: pool.valueOf(await pool.call('echo', sample)),
    expected: sample,
  })
  // ~10 ms each, so that every thread gets its share even where the first would take all.
  const asked = Array.from({ length: threads * 4 }, () =>
    pool.call('stage', { turns: 5_000_000, payload: 1 }),
  )
  await Promise.all(asked)
  const ids = new Set<unknown>()
  for (let turn = 0; turn < 50 && ids.size < threads; turn += 1) {
    const seen = await Promise.all(Array.from({ length: threads * 8 }, () => pool.call('thread', undefined)))
    for (const one of seen) ids.add(pool.valueOf(one))
  }
  if (who !== 'direct' && who !== 'skein-node')
    checkAnswer({
      contender: who,
      work: 'thread (main thread did it)',
      got: ids.has(thread()),
      expected: false,
    })
  return { threads: ids.size }
}

async function sequential(
  who: string,
  pool: Pool,
  form: Form,
  sliceMs: number,
): Promise<Jobs['sequential']['result']> {
  const call = callOf(pool, form)
  let calls = 0
  let wrong = 0
  const cpu = process.cpuUsage()
  const slice = await timeSlice(
    async () => {
      calls += 1
      if (pool.valueOf(await call()) !== undefined) wrong += 1
    },
    sliceMs,
    true,
  )
  const cpuUs = cpuSince(cpu) / calls
  checkAnswer({ contender: who, work: 'nothing, one by one: wrong answers', got: wrong, expected: 0 })
  return { p50Us: slice.p50Ns / 1000, p99Us: slice.p99Ns / 1000, cpuUs, calls }
}

async function oneByOne(who: string, pool: Pool, form: Form, calls: number): Promise<Jobs['loop']['result']> {
  const call = callOf(pool, form)
  let wrong = 0
  const cpu = process.cpuUsage()
  const start = performance.now()
  for (let index = 0; index < calls; index += 1) if (pool.valueOf(await call()) !== undefined) wrong += 1
  const ms = performance.now() - start
  checkAnswer({ contender: who, work: 'nothing, one by one: wrong answers', got: wrong, expected: 0 })
  return { ms, cpuUs: cpuSince(cpu) / calls }
}

async function allAtOnce(
  who: string,
  pool: Pool,
  form: Form,
  calls: number,
): Promise<Jobs['batch']['result']> {
  const call = callOf(pool, form)
  const promises = new Array<PromiseLike<unknown>>(calls)
  const cpu = process.cpuUsage()
  const start = performance.now()
  for (let index = 0; index < calls; index += 1) promises[index] = call()
  const answers = await Promise.all(promises)
  const ms = performance.now() - start
  const cpuUs = cpuSince(cpu) / calls
  const wrong = answers.filter((given) => pool.valueOf(given) !== undefined).length
  checkAnswer({ contender: who, work: 'nothing, all at once: wrong answers', got: wrong, expected: 0 })
  return { ms, cpuUs }
}

async function firstCalls(
  who: string,
  pool: Pool,
  form: Form,
  calls: number,
): Promise<Jobs['firsts']['result']> {
  const call = callOf(pool, form)
  const us: number[] = []
  for (let index = 0; index < calls; index += 1) {
    const start = performance.now()
    const given = await call()
    us.push((performance.now() - start) * 1000)
    checkAnswer({ contender: who, work: 'nothing', got: pool.valueOf(given), expected: undefined })
  }
  return { us }
}

async function crcThere(
  who: string,
  pool: Pool,
  order: Jobs['crc']['order'],
): Promise<Jobs['crc']['result']> {
  const input = { text: order.text, count: order.count }
  const cpu = process.cpuUsage()
  const start = performance.now()
  const eachMs: number[] = []
  const answers = await Promise.all(
    Array.from({ length: order.calls }, async () => {
      const given = await pool.call('crcMany', input)
      eachMs.push(performance.now() - start)
      return pool.valueOf(given)
    }),
  )
  const ms = performance.now() - start
  for (const got of answers) checkAnswer({ contender: who, work: 'crcMany', got, expected: order.expected })
  return { ms, cpuMs: cpuSince(cpu) / 1000, eachMs }
}

/** The same work in `calls` equal calls, each awaited: what dispatch adds to long work. */
async function crcSplit(who: string, pool: Pool, order: Jobs['crcSplit']['order']): Promise<{ ms: number }> {
  const input = { text: order.text, count: order.count / order.calls }
  const expected = crcMany(input)
  const start = performance.now()
  for (let call = 0; call < order.calls; call += 1) {
    const got = pool.valueOf(await pool.call('crcMany', input))
    checkAnswer({ contender: who, work: 'crcMany', got, expected })
  }
  return { ms: performance.now() - start }
}

/**
 * One worker's time while the main thread is as busy as it: both cores loaded, one of them not by a worker.
 */
async function crcBesideMain(
  who: string,
  pool: Pool,
  order: Jobs['crcBesideMain']['order'],
): Promise<{ ms: number }> {
  const input = { text: order.text, count: order.count }
  // The worker times itself: the main thread is not there to see it end.
  const timing = pool.call('timedCrcMany', input)
  await new Promise((resolve) => setImmediate(resolve)) // lets pools that send from their loop send
  timed('crcMany', () => crcMany(input), order.expected)
  const { ms, folded } = pool.valueOf(await timing) as { ms: number; folded: number }
  checkAnswer({ contender: who, work: 'timedCrcMany', got: folded, expected: order.expected })
  return { ms }
}

/** So many calls at once, awaited, again and again: the mean time of such a burst. */
async function burst(who: string, pool: Pool, calls: number, bursts: number): Promise<{ us: number }> {
  let wrong = 0
  const start = performance.now()
  for (let turn = 0; turn < bursts; turn += 1) {
    const given = await Promise.all(Array.from({ length: calls }, () => pool.nothing()))
    for (const each of given) if (pool.valueOf(each) !== undefined) wrong += 1
  }
  const us = ((performance.now() - start) * 1000) / bursts
  checkAnswer({ contender: who, work: 'nothing, in bursts: wrong answers', got: wrong, expected: 0 })
  return { us }
}

async function joins(who: string, pool: Pool, order: Jobs['joins']['order']): Promise<{ ms: number }> {
  const start = performance.now()
  const got = pool.valueOf(await pool.joins!(order.name, order.input))
  const ms = performance.now() - start
  if (order.name !== 'quicksort') {
    checkAnswer({ contender: who, work: order.name, got, expected: order.expected })
    return { ms }
  }
  const answer = got as { readonly sorted: boolean; readonly ms: number }
  checkAnswer({ contender: who, work: order.name, got: answer.sorted, expected: order.expected })
  return { ms: answer.ms }
}

/**
 * Short calls until the engine has compiled the stage for good: it counts calls and not turns for that, so
 * with long ones alone each takes five times as long for ten seconds. Then some as long as the measured
 * ones: in one process of six a worker went on in the engine's middle tier for its first 4,000 of them.
 */
async function warmUp(pool: Pool, fullTurns: number, forks: boolean): Promise<void> {
  const [turns, batch] = [100, 64]
  for (let calls = 0; calls < 40_000; calls += batch) {
    const input = { turns: calls < 30_000 ? turns : fullTurns, payload: 0 }
    await Promise.all(Array.from({ length: batch }, () => pool.call('stage', input)))
  }
  const { joins } = pool
  if (!forks || joins === undefined) return
  for (let calls = 0; calls < 300; calls += 1) await joins('pieces', { turns, count: 100 })
}

/** Times from when a call was due to its answer, so that a late sender counts as waiting. */
async function skewed(who: string, pool: Pool, order: SkewedOrder): Promise<Jobs['skewed']['result']> {
  const { calls, gapUs, turns, dearer, oneIn, forks } = order
  const all: number[] = []
  const cheap: number[] = []
  const answers: Promise<void>[] = []
  const start = performance.now()
  let draw = 1
  for (let index = 0; index < calls; index += 1) {
    const dueMs = (index * gapUs) / 1000
    while (performance.now() - start < dueMs) await new Promise((resolve) => setTimeout(resolve, 1))
    draw = (Math.imul(draw, 1664525) + 1013904223) | 0
    const dear = (draw >>> 8) % oneIn === 0
    const call = !dear
      ? pool.call('stage', { turns, payload: 0 })
      : forks && pool.joins !== undefined
        ? pool.joins('pieces', { turns, count: dearer })
        : pool.call('stage', { turns: turns * dearer, payload: 0 })
    const answered = async (): Promise<void> => {
      const got = pool.valueOf(await call)
      const us = (performance.now() - start - dueMs) * 1000
      all.push(us)
      if (!dear) cheap.push(us)
      const right = typeof got === 'number' ? got === dearer : (got as { payload: unknown }).payload === 0
      checkAnswer({ contender: who, work: 'skewed', got: right, expected: true })
    }
    answers.push(answered())
  }
  await Promise.all(answers)
  all.sort((a, b) => a - b)
  cheap.sort((a, b) => a - b)
  return { p50Us: quantile(all, 0.5), p99Us: quantile(all, 0.99), cheapP99Us: quantile(cheap, 0.99) }
}

function crcHere(order: Jobs['crcHere']['order']): Jobs['crcHere']['result'] {
  const cpu = process.cpuUsage()
  const { ms } = timed('crcMany', () => crcMany(order), order.expected)
  return { ms, cpuMs: cpuSince(cpu) / 1000 }
}

function timed(work: string, run: () => number, expected: number): { ms: number } {
  const start = performance.now()
  const got = run()
  const ms = performance.now() - start
  checkAnswer({ contender: 'main thread', work, got, expected })
  return { ms }
}

async function mixedThere(
  who: string,
  pool: Pool,
  rounds: number,
  expected: number,
): Promise<{ ms: number }> {
  const start = performance.now()
  const given = await pool.call('mixed', { rounds })
  const ms = performance.now() - start
  checkAnswer({ contender: who, work: 'mixed', got: pool.valueOf(given), expected })
  return { ms }
}

/** Resident memory of the process after every thread has worked; the caller compares thread counts. */
async function memory(who: string, pool: Pool, calls: number): Promise<{ rssMb: number }> {
  for (let turn = 0; turn < 3; turn += 1)
    await Promise.all(Array.from({ length: calls }, () => pool.call('mixed', { rounds: 2000 })))
  await answered(who, pool, pool.nothing)
  await new Promise((resolve) => setTimeout(resolve, 200)) // threads go to sleep
  return { rssMb: process.memoryUsage.rss() / 2 ** 20 }
}

async function idle(ms: number): Promise<{ cpuUs: number }> {
  await new Promise((resolve) => setTimeout(resolve, 300)) // what ran before has ended
  const cpu = process.cpuUsage()
  await new Promise((resolve) => setTimeout(resolve, ms))
  return { cpuUs: cpuSince(cpu) }
}

function hopHere(order: HopOrder): Jobs['hopHere']['result'] {
  const expected = churn(order.turns)
  let wrong = 0
  const cpu = process.cpuUsage()
  const start = performance.now()
  for (let item = 0; item < order.items; item += 1) if (churn(order.turns) !== expected) wrong += 1
  const ms = performance.now() - start
  checkAnswer({ contender: 'main thread', work: 'stage: wrong answers', got: wrong, expected: 0 })
  return { usPerItem: (ms * 1000) / order.items, cpuUs: cpuSince(cpu) / order.items }
}

async function hopThere(who: string, pool: Pool, order: HopOrder): Promise<Jobs['hopThere']['result']> {
  const payload = payloadOf(order.bytes)
  const expected = churn(order.turns)
  const size = sizeOf(payload)
  let started = 0
  let wrong = 0
  async function lane(): Promise<void> {
    while (started < order.items) {
      started += 1
      const given = pool.valueOf(await pool.call('stage', { turns: order.turns, payload }))
      const { answer, payload: back } = given as { answer: number; payload: unknown }
      if (answer !== expected || sizeOf(back) !== size) wrong += 1
    }
  }
  const cpu = process.cpuUsage()
  const start = performance.now()
  await Promise.all(Array.from({ length: order.inFlight }, lane))
  const ms = performance.now() - start
  checkAnswer({ contender: who, work: 'stage: wrong answers', got: wrong, expected: 0 })
  return { usPerItem: (ms * 1000) / order.items, cpuUs: cpuSince(cpu) / order.items }
}

/** Records such as services pass on: 100 bytes of JSON each; nothing for 0 bytes. */
function payloadOf(bytes: number): unknown {
  if (bytes === 0) return undefined
  const record = (id: number): unknown => ({
    id,
    name: `customer number ${id % 10}`,
    active: true,
    score: 12.75,
    tags: ['new', 'eu', 'b2b'],
  })
  return Array.from({ length: Math.max(1, Math.round(bytes / 100)) }, (_, index) => record(index + 10_000))
}

function sizeOf(payload: unknown): number {
  return Array.isArray(payload) ? payload.length : 0
}

function cpuSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return user + system
}
