/**
 * The jobs of a contender's process: each job measures one slice and checks its answers.
 *
 * Jobs never interpret: they return raw figures of one slice, and the table takes medians over slices. CPU is
 * that of the whole process, all threads, as the kernel counts it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { checkAnswer } from '../harness/errors.ts'
import { quantile } from '../harness/stats.ts'
import type { Abandoned, Contender, Pool, PoolSettings } from './pools.ts'
import { churn, crcMany, type CrcInput, mixed, thread } from './work.ts'

/** The ways to call the function that does nothing. */
export type Form = 'named' | 'anonymous' | 'reused'

/** CRCs in one call or several, and what each must answer. */
export interface CrcOrder extends CrcInput {
  readonly expected: number
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

type Calls = { readonly form: Form; readonly calls: number }
type Rounds = { readonly rounds: number; readonly expected: number }
/** A pool once it is open: every one has `unwrap`. */
type Opened = Pool & Required<Pick<Pool, 'unwrap'>>

/** The jobs of one contender. */
export class Jobs {
  readonly #contender: Contender
  #opened: Opened | undefined

  constructor(contender: Contender) {
    this.#contender = contender
  }

  get #pool(): Opened {
    return this.#opened!
  }

  #check(work: string, got: unknown, expected: unknown, contender = this.#contender.name): void {
    checkAnswer({ contender, work, got, expected })
  }

  #callOf(form: Form): () => PromiseLike<unknown> {
    return { named: this.#pool.nothing, anonymous: this.#pool.anonymous, reused: this.#pool.reused }[form]!
  }

  /** The value of one call by name. */
  async #value(name: Parameters<Pool['call']>[0], input: unknown): Promise<unknown> {
    return this.#pool.unwrap(await this.#pool.call(name, input))
  }

  /** Open the pool and have one call answered; the time of both. */
  async open(settings: PoolSettings): Promise<{ ms: number }> {
    if (this.#contender.package !== undefined) await import(this.#contender.package)
    const start = performance.now()
    const pool = await this.#contender.open(settings)
    this.#opened = Object.assign(pool, { unwrap: pool.unwrap ?? ((result: unknown) => result) })
    await this.firsts({ form: 'named', calls: 1 })
    return { ms: performance.now() - start }
  }

  /** Values pass through, threads are real and as many as asked for. */
  async prove({ threads }: { readonly threads: number }): Promise<{ threads: number }> {
    const [pool, who] = [this.#pool, this.#contender.name]
    const sample = { text: 'päyload', list: [1, 2.5, null, true], inner: { deep: ['x'] } }
    this.#check('echo', await this.#value('echo', sample), sample)
    // ~10 ms each, so that every thread gets its share even where the first would take all.
    await all(threads * 4, () => pool.call('stage', { turns: 5_000_000, payload: 1 }))
    const ids = new Set<unknown>()
    for (let turn = 0; turn < 50 && ids.size < threads; turn += 1) {
      for (const id of await all(threads * 8, () => this.#value('thread', undefined))) ids.add(id)
    }
    if (who !== 'direct' && who !== 'corespun-node')
      this.#check('thread (main thread did it)', ids.has(thread()), false)
    return { threads: ids.size }
  }

  /** One call after the other, each timed by mitata's loop: its code is made for each function it times. */
  async sequential({ form, sliceMs }: { readonly form: Form; readonly sliceMs: number }): Promise<{
    p50Us: number
    p99Us: number
    cpuUs: number
  }> {
    const { measure } = await import('mitata')
    const [pool, call, cpu] = [this.#pool, this.#callOf(form), cpuClock()]
    let [calls, wrong] = [0, 0]
    const timed = async (): Promise<void> => {
      calls += 1
      if (pool.unwrap(await call()) !== undefined) wrong += 1
    }
    // One clock reading around each call, and no collection that is not due.
    const alone = { gc: false, inner_gc: false, min_samples: 12, batch_threshold: -1 }
    const stats = await measure(timed, { ...alone, min_cpu_time: sliceMs * 1e6 })
    const { p50, p99 } = stats as { readonly p50: number; readonly p99: number }
    const cpuUs = cpu() / calls
    this.#check('nothing, one by one: wrong answers', wrong, 0)
    return { p50Us: p50 / 1000, p99Us: p99 / 1000, cpuUs }
  }

  /** So many calls, each awaited before the next. */
  async loop({ form, calls }: Calls): Promise<{ ms: number; cpuUs: number }> {
    const [pool, call, cpu] = [this.#pool, this.#callOf(form), cpuClock()]
    let wrong = 0
    const start = performance.now()
    for (let index = 0; index < calls; index += 1) if (pool.unwrap(await call()) !== undefined) wrong += 1
    const ms = performance.now() - start
    this.#check('nothing, one by one: wrong answers', wrong, 0)
    return { ms, cpuUs: cpu() / calls }
  }

  /** So many calls, issued at once and awaited together. */
  async batch({ form, calls }: Calls): Promise<{ ms: number; cpuUs: number }> {
    const [pool, call] = [this.#pool, this.#callOf(form)]
    const promises = new Array<PromiseLike<unknown>>(calls)
    const cpu = cpuClock()
    const start = performance.now()
    for (let index = 0; index < calls; index += 1) promises[index] = call()
    const answers = await Promise.all(promises)
    const ms = performance.now() - start
    const cpuUs = cpu() / calls
    const wrong = answers.filter((result) => pool.unwrap(result) !== undefined).length
    this.#check('nothing, all at once: wrong answers', wrong, 0)
    return { ms, cpuUs }
  }

  /** The times of single calls. */
  async firsts({ form, calls }: Calls): Promise<{ us: number[] }> {
    const call = this.#callOf(form)
    const us: number[] = []
    for (let index = 0; index < calls; index += 1) {
      const start = performance.now()
      const result = await call()
      us.push((performance.now() - start) * 1000)
      this.#check('nothing', this.#pool.unwrap(result), undefined)
    }
    return { us }
  }

  /** So many calls of the same CRCs at once. */
  async crc({ calls, expected, text, count }: CrcOrder & { readonly calls: number }): Promise<{
    ms: number
    cpuMs: number
  }> {
    const cpu = cpuClock()
    const start = performance.now()
    const answers = await all(calls, () => this.#value('crcMany', { text, count }))
    const ms = performance.now() - start
    for (const got of answers) this.#check('crcMany', got, expected)
    return { ms, cpuMs: cpu() / 1000 }
  }

  /** The same work in `calls` equal calls, each awaited: what dispatch adds to long work. */
  async crcSplit({ calls, text, count }: CrcInput & { readonly calls: number }): Promise<{ ms: number }> {
    const input = { text, count: count / calls }
    const expected = crcMany(input)
    const start = performance.now()
    for (let call = 0; call < calls; call += 1)
      this.#check('crcMany', await this.#value('crcMany', input), expected)
    return { ms: performance.now() - start }
  }

  /**
   * One worker's time while the main thread is as busy as it: both cores loaded, one of them not by a worker.
   */
  async crcBesideMain({ text, count, expected }: CrcOrder): Promise<{ ms: number }> {
    // The worker times itself: the main thread is busy when it ends.
    const timing = this.#value('timedCrcMany', { text, count })
    await new Promise((resolve) => setImmediate(resolve)) // lets pools that send from their loop send
    this.#here('crcMany', () => crcMany({ text, count }), expected)
    const { ms, folded } = (await timing) as { ms: number; folded: number }
    this.#check('timedCrcMany', folded, expected)
    return { ms }
  }

  async crcHere(order: CrcOrder): Promise<{ ms: number; cpuMs: number }> {
    const cpu = cpuClock()
    const { ms } = this.#here('crcMany', () => crcMany(order), order.expected)
    return { ms, cpuMs: cpu() / 1000 }
  }

  async mixedHere({ rounds, expected }: Rounds): Promise<{ ms: number }> {
    return this.#here('mixed', () => mixed({ rounds }), expected)
  }

  async mixedThere({ rounds, expected }: Rounds): Promise<{ ms: number }> {
    const start = performance.now()
    const got = await this.#value('mixed', { rounds })
    const ms = performance.now() - start
    this.#check('mixed', got, expected)
    return { ms }
  }

  #here(work: string, run: () => number, expected: number): { ms: number } {
    const start = performance.now()
    const got = run()
    const ms = performance.now() - start
    this.#check(work, got, expected, 'main thread')
    return { ms }
  }

  /** Resident memory of the process after every thread has worked; the caller compares thread counts. */
  async memory({ calls }: { readonly calls: number }): Promise<{ rssMb: number }> {
    for (let turn = 0; turn < 3; turn += 1) await all(calls, () => this.#value('mixed', { rounds: 2000 }))
    await this.firsts({ form: 'named', calls: 1 })
    await sleep(200) // threads go to sleep
    return { rssMb: process.memoryUsage.rss() / 2 ** 20 }
  }

  /** CPU of the whole process while nothing is asked of it. */
  async idle({ ms }: { readonly ms: number }): Promise<{ cpuUs: number }> {
    await sleep(300) // what ran before has ended
    const cpu = cpuClock()
    await sleep(ms)
    return { cpuUs: cpu() }
  }

  /** So many calls at once, awaited, again and again: the mean time of such a burst. */
  async burst({
    calls,
    bursts,
  }: {
    readonly calls: number
    readonly bursts: number
  }): Promise<{ us: number }> {
    const pool = this.#pool
    let wrong = 0
    const start = performance.now()
    for (let turn = 0; turn < bursts; turn += 1) {
      for (const result of await all(calls, () => pool.nothing()))
        if (pool.unwrap(result) !== undefined) wrong += 1
    }
    const us = ((performance.now() - start) * 1000) / bursts
    this.#check('nothing, in bursts: wrong answers', wrong, 0)
    return { us }
  }

  /** One function of joins.ts; quicksort times its sorting alone. */
  async joins({
    name,
    input,
    expected,
  }: {
    readonly name: string
    readonly input: unknown
    readonly expected: unknown
  }): Promise<{ ms: number }> {
    const start = performance.now()
    const got = this.#pool.unwrap(await this.#pool.joins!(name, input))
    const ms = performance.now() - start
    const sorted = got as { readonly sorted: boolean; readonly ms: number }
    this.#check(name, name === 'quicksort' ? sorted.sorted : got, expected)
    return name === 'quicksort' ? { ms: sorted.ms } : { ms }
  }

  async abandon({ graceMs }: { readonly graceMs: number }): Promise<Abandoned> {
    return this.#pool.abandon!(graceMs)
  }

  /**
   * Short calls until the engine has compiled the stage for good: it counts calls and not turns for that, so
   * with long ones alone each takes five times as long for ten seconds. Then some as long as the measured
   * ones: in one process of six a worker went on in the engine's middle tier for its first 4,000 of them.
   */
  async #warmUp(fullTurns: number, forks: boolean): Promise<void> {
    const [pool, turns, batch] = [this.#pool, 100, 64]
    for (let calls = 0; calls < 40_000; calls += batch) {
      const input = { turns: calls < 30_000 ? turns : fullTurns, payload: 0 }
      await all(batch, () => pool.call('stage', input))
    }
    if (!forks || pool.joins === undefined) return
    for (let calls = 0; calls < 300; calls += 1) await pool.joins('pieces', { turns, count: 100 })
  }

  /** Times from when a call was due to its answer, so that a late sender counts as waiting. */
  async skewed(order: SkewedOrder): Promise<{ p50Us: number; p99Us: number; cheapP99Us: number }> {
    const { calls, gapUs, turns, dearer, oneIn, forks, warmsUp } = order
    if (warmsUp) await this.#warmUp(turns, forks)
    const pool = this.#pool
    const [every, cheap]: [number[], number[]] = [[], []]
    const answers: Promise<void>[] = []
    const start = performance.now()
    let draw = 1
    for (let index = 0; index < calls; index += 1) {
      const dueMs = (index * gapUs) / 1000
      while (performance.now() - start < dueMs) await new Promise((resolve) => setTimeout(resolve, 1))
      draw = (Math.imul(draw, 1664525) + 1013904223) | 0
      const dear = (draw >>> 8) % oneIn === 0
      const call =
        dear && forks && pool.joins !== undefined
          ? pool.joins('pieces', { turns, count: dearer })
          : pool.call('stage', { turns: dear ? turns * dearer : turns, payload: 0 })
      const answered = async (): Promise<void> => {
        const got = pool.unwrap(await call)
        const us = (performance.now() - start - dueMs) * 1000
        every.push(us)
        if (!dear) cheap.push(us)
        const right = typeof got === 'number' ? got === dearer : (got as { payload: unknown }).payload === 0
        this.#check('skewed', right, true)
      }
      answers.push(answered())
    }
    await Promise.all(answers)
    const [sorted, sortedCheap] = [every, cheap].map((us) => us.sort((a, b) => a - b)) as [number[], number[]]
    const [p50Us, p99Us] = [quantile(sorted, 0.5), quantile(sorted, 0.99)]
    return { p50Us, p99Us, cheapP99Us: quantile(sortedCheap, 0.99) }
  }

  async hopHere({ items, turns }: HopOrder): Promise<{ usPerItem: number; cpuUs: number }> {
    const expected = churn(turns)
    let wrong = 0
    const cpu = cpuClock()
    const start = performance.now()
    for (let item = 0; item < items; item += 1) if (churn(turns) !== expected) wrong += 1
    const ms = performance.now() - start
    this.#check('stage: wrong answers', wrong, 0, 'main thread')
    return { usPerItem: (ms * 1000) / items, cpuUs: cpu() / items }
  }

  async hopThere({ items, inFlight, turns, bytes }: HopOrder): Promise<{ usPerItem: number; cpuUs: number }> {
    const [pool, payload, expected] = [this.#pool, payloadOf(bytes), churn(turns)]
    const size = sizeOf(payload)
    let [started, wrong] = [0, 0]
    async function lane(): Promise<void> {
      while (started < items) {
        started += 1
        const result = pool.unwrap(await pool.call('stage', { turns, payload }))
        const { answer, payload: back } = result as { answer: number; payload: unknown }
        if (answer !== expected || sizeOf(back) !== size) wrong += 1
      }
    }
    const cpu = cpuClock()
    const start = performance.now()
    await all(inFlight, lane)
    const ms = performance.now() - start
    this.#check('stage: wrong answers', wrong, 0)
    return { usPerItem: (ms * 1000) / items, cpuUs: cpu() / items }
  }
}

function all<Value>(count: number, make: () => PromiseLike<Value>): Promise<Value[]> {
  return Promise.all(Array.from({ length: count }, () => make()))
}

/** Records such as services pass on: 100 bytes of JSON each; nothing for 0 bytes. */
function payloadOf(bytes: number): unknown {
  if (bytes === 0) return undefined
  const record = (id: number): unknown => {
    return { id, name: `customer number ${id % 10}`, active: true, score: 12.75, tags: ['new', 'eu', 'b2b'] }
  }
  return Array.from({ length: Math.max(1, Math.round(bytes / 100)) }, (_, index) => record(index + 10_000))
}

function sizeOf(payload: unknown): number {
  return Array.isArray(payload) ? payload.length : 0
}

/** Reads the CPU time of the process from now on, in µs. */
function cpuClock(): () => number {
  const before = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(before)
    return user + system
  }
}
