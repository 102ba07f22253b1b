/**
 * The tasks of a random schedule: what each does, and what may become of its call.
 *
 * Every task counts its own start in `cells[index]`, memory that all threads share, so that it can be checked
 * afterwards how often it has run. A task's function captures nothing: it gets all it needs as arguments.
 */

/** What may become of any call: a zone refuses it, closes, or loses the worker that runs it. */
const ALWAYS = ['ZONE_FULL', 'ZONE_CLOSED', 'WORKER_DIED']

/** Cells of one task: its own, and those of what it forks. */
export const CELLS = 8
/** Most tasks that one forks. */
export const FORKS_MAX = CELLS - 1

/**
 * @typedef {object} Kind
 * @property {number} weight How often it is chosen, among all.
 * @property {string[]} ends How it may end, besides {@link ALWAYS} and a given-up call's own.
 * @property {boolean} [deadly] It ends its worker.
 * @property {boolean} [shares] While it waits, its worker may begin others, which end with that worker.
 * @property {boolean} [stubborn] It ends with its call being given up, or not at all.
 * @property {(own: object, step: object, cells: Int32Array, options: object) => Promise<unknown>} call
 * @property {(step: object) => unknown} [value] What it returns when it is done; absent: nothing is compared.
 */

/** A task that returns its number. */
const simple = (fn) => (own, step, cells, options) =>
  own.execute(fn, [cells, step.index * CELLS, step.number], options).then((result) => result.value)

/** @type {Record<string, Kind>} */
export const KINDS = {
  echo: {
    weight: 30,
    ends: ['done'],
    call: simple((cells, at, number) => (Atomics.add(cells, at, 1), number)),
    value: ({ number }) => number,
  },
  wait: {
    weight: 6,
    ends: ['done'],
    call: simple((cells, at, number) => {
      Atomics.add(cells, at, 1)
      return new Promise((resolve) => setTimeout(resolve, number % 5, number))
    }),
    value: ({ number }) => number,
  },
  bytes: {
    weight: 5,
    ends: ['done'],
    call: (own, step, cells, options) => {
      const fn = (cells, at, bytes) => (Atomics.add(cells, at, 1), bytes)
      const bytes = new Uint8Array(1 + ((step.number * 37) % 200_000)).fill(step.number % 251)
      const call = own.execute(fn, [cells, step.index * CELLS, bytes], options)
      return call.then(({ value }) => [value.length, value[value.length - 1]].join())
    },
    value: ({ number }) => [1 + ((number * 37) % 200_000), number % 251].join(),
  },
  fork: {
    weight: 6,
    ends: ['done'],
    shares: true,
    call: (own, step, cells, options) => {
      const fn = async (cells, at, number, module, forksMax) => {
        Atomics.add(cells, at, 1)
        const { zone } = await import(module)
        const child = (cells, at) => (Atomics.add(cells, at, 1), at)
        const count = number % (forksMax + 1)
        const calls = Array.from({ length: count }, (_, n) => zone.current.run(child, cells, at + 1 + n))
        const ends = await Promise.allSettled(calls)
        const wrong = ends.some((end, n) => end.status === 'fulfilled' && end.value !== at + 1 + n)
        return wrong ? 'a fork returned what is not its own' : number
      }
      const args = [cells, step.index * CELLS, step.number, step.module, FORKS_MAX]
      return own.execute(fn, args, options).then((result) => result.value)
    },
    value: ({ number }) => number,
  },
  join: {
    weight: 4,
    ends: ['done'],
    shares: true,
    call: (own, step, cells, options) => {
      const fn = async (cells, at, number, module) => {
        Atomics.add(cells, at, 1)
        const { join } = await import(module)
        const child = (cells, at, number) => (Atomics.add(cells, at, 1), number)
        const sides = join([child, cells, at + 1, number], [child, cells, at + 2, number + 1])
        return sides[0] === number && sides[1] === number + 1 ? number : `joined ${sides.join()}`
      }
      const args = [cells, step.index * CELLS, step.number, step.module]
      return own.execute(fn, args, options).then((result) => result.value)
    },
    value: ({ number }) => number,
  },
  error: {
    weight: 4,
    ends: ['E_OWN'],
    call: simple((cells, at, number) => {
      Atomics.add(cells, at, 1)
      throw Object.assign(new RangeError(String(number)), { code: 'E_OWN' })
    }),
  },
  map: {
    weight: 2,
    ends: ['done'],
    // Its chunks have no cells: a task of the zone's own, not of ours.
    call: (own, step, _, options) => {
      const items = Array.from({ length: 40 }, (_, n) => step.number + n)
      const signal = options.signal ?? AbortSignal.timeout(options.timeoutMs ?? 60_000)
      return own.map(items, (n) => 2 * n, { signal }).then((all) => all.join())
    },
    value: ({ number }) => Array.from({ length: 40 }, (_, n) => 2 * (number + n)).join(),
  },
  signalled: {
    weight: 4,
    ends: ['done'], // a zone that closes ends it too
    stubborn: true,
    call: simple(function (cells, at) {
      Atomics.add(cells, at, 1)
      return new Promise((resolve) => this.signal.addEventListener('abort', () => resolve()))
    }),
  },
  never: {
    weight: 2,
    ends: [],
    stubborn: true,
    call: simple((cells, at) => {
      Atomics.add(cells, at, 1)
      return new Promise(() => {})
    }),
  },
  loop: {
    weight: 2,
    ends: [],
    stubborn: true,
    call: simple((cells, at) => {
      Atomics.add(cells, at, 1)
      for (;;);
    }),
  },
  exit: {
    weight: 2,
    ends: [],
    deadly: true,
    call: simple((cells, at, number) => {
      Atomics.add(cells, at, 1)
      process.exit(number % 4)
    }),
  },
  uncaught: {
    weight: 2,
    ends: ['Error: uncaught'], // where other tasks are in flight on its worker
    deadly: true,
    call: simple((cells, at) => {
      Atomics.add(cells, at, 1)
      setImmediate(() => {
        throw new Error('uncaught')
      })
      return new Promise(() => {})
    }),
  },
  unhandled: {
    weight: 1,
    ends: ['Error: unhandled'],
    deadly: true,
    call: simple((cells, at) => {
      Atomics.add(cells, at, 1)
      void Promise.reject(new Error('unhandled'))
      return new Promise(() => {})
    }),
  },
  heap: {
    weight: 1,
    ends: [],
    deadly: true,
    // One allocation that is larger than the limit and the room which Node adds to it ends the process, in
    // any worker thread of Node's: docs/guide/zone-workers.md. So these grow by less at a time.
    call: simple((cells, at, number) => {
      Atomics.add(cells, at, 1)
      const kept = []
      if (number % 2 === 0) for (;;) kept.push(Array.from({ length: 1000 }, () => ({})))
      const grow = () => kept.push(new Array(100_000).fill(number)) && setImmediate(grow)
      grow()
      return new Promise(() => {})
    }),
  },
}

const WEIGHTED = Object.entries(KINDS).flatMap(([name, { weight }]) => Array(weight).fill(name))

/** One of the kinds, by weight. @param {(below: number) => number} random */
export function someKind(random) {
  return WEIGHTED[random(WEIGHTED.length)]
}

/**
 * Submit a task and see how it ends.
 * @returns {Promise<{index: number, how: string, wrong: string}>} `how`: `done` or the error's code; `wrong`:
 *   what is not as it must be, '' for nothing.
 */
export async function perform(own, step, cells, alone) {
  const { kind, index, timeoutMs, abortMs } = step
  const { ends, value, call, deadly = false } = KINDS[kind]
  const controller = abortMs === undefined ? undefined : new AbortController()
  const timer = controller && setTimeout(() => controller.abort(), abortMs)
  const options = {
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(controller === undefined ? {} : { signal: controller.signal }),
  }
  const [how, given] = await call(own, step, cells, options).then(
    (given) => ['done', given],
    (error) => [error.code === 20 || error.code === 23 ? error.name : (error.code ?? String(error)), error],
  )
  clearTimeout(timer)
  const allowed = [
    ...ends,
    ...(alone && !deadly ? ALWAYS.filter((end) => end !== 'WORKER_DIED') : ALWAYS),
    ...(timeoutMs === undefined ? [] : ['TASK_TIMEOUT', 'TimeoutError']),
    ...(controller === undefined ? [] : ['AbortError']),
  ]
  const runs = Atomics.load(cells, index * CELLS)
  const unstarted = how === 'ZONE_FULL' || (how === 'TASK_TIMEOUT' && given.facts.started === false)
  let wrong = ''
  if (!allowed.includes(how)) wrong = `ended with ${how}: ${given?.message ?? given}`
  else if (how === 'done' && value !== undefined && given !== value(step)) wrong = `returned ${given}`
  else if (how === 'done' && kind !== 'map' && runs !== 1) wrong = `was done and has run ${runs} times`
  else if (how === 'E_OWN' && given.message !== String(step.number)) wrong = `threw ${given.message}`
  else if (unstarted && runs !== 0) wrong = `ended with ${how} and has run ${runs} times`
  return { index, how, wrong }
}
