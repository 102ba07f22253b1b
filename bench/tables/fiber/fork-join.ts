/**
 * What fork and join cost: one after the other, in one fiber that joins each.
 *
 * Three bodies: a function that never waits, a generator that never waits, and one that lets others go first
 * once. With promises: an async function that does not wait, and one that awaits a settled promise once.
 */

type Cost = (times: number) => Promise<void>

/** The programs of a contender; none for those that have no fibers. */
export async function forkJoin(contender: string): Promise<Record<string, Cost>> {
  if (contender === 'corespun') return corespun()
  if (contender === 'promises') return promises()
  if (contender === 'floor') return floor()
  return contender === 'effect' ? effect() : {}
}

/** The rows. */
export const FORK_JOIN = {
  plain: 'fork+join, a function that never waits',
  generator: 'fork+join, a generator that never waits',
  once: 'fork+join, waits once',
} as const

async function corespun(): Promise<Record<string, Cost>> {
  const { fork, yieldNow } = await import('corespun/fiber')
  const plain = (): number => 1
  // oxlint-disable-next-line require-yield -- a generator that never waits is what is measured
  function* generator(): Generator<never, number, unknown> {
    return 1
  }
  function* once(): Generator<object, number, unknown> {
    yield* yieldNow()
    return 1
  }
  // One parent for each body, as programs have them, so that each is compiled for what it forks.
  function* parentOfPlain(times: number): Generator<object, number, unknown> {
    let sum = 0
    for (let turn = 0; turn < times; turn += 1) sum += yield* fork(plain).join()
    return sum
  }
  function* parentOfGenerator(times: number): Generator<object, number, unknown> {
    let sum = 0
    for (let turn = 0; turn < times; turn += 1) sum += yield* fork(generator).join()
    return sum
  }
  function* parentOfOnce(times: number): Generator<object, number, unknown> {
    let sum = 0
    for (let turn = 0; turn < times; turn += 1) sum += yield* fork(once).join()
    return sum
  }
  const run =
    (parent: (times: number) => Generator<object, number, unknown>): Cost =>
    async (times) =>
      check(await fork(parent(times)).join(), times)
  return {
    [FORK_JOIN.plain]: run(parentOfPlain),
    [FORK_JOIN.generator]: run(parentOfGenerator),
    [FORK_JOIN.once]: run(parentOfOnce),
  }
}

async function promises(): Promise<Record<string, Cost>> {
  const plain = async (): Promise<number> => 1
  const once = async (): Promise<number> => {
    await undefined
    return 1
  }
  return {
    [FORK_JOIN.plain]: async (times) => {
      let sum = 0
      for (let turn = 0; turn < times; turn += 1) sum += await plain()
      check(sum, times)
    },
    [FORK_JOIN.once]: async (times) => {
      let sum = 0
      for (let turn = 0; turn < times; turn += 1) sum += await once()
      check(sum, times)
    },
  }
}

async function effect(): Promise<Record<string, Cost>> {
  const { Effect, Fiber } = await import('effect')
  const plain = Effect.sync(() => 1)
  const generator = Effect.gen(function* () {
    return yield* plain
  })
  const once = Effect.gen(function* () {
    yield* Effect.yieldNow
    return 1
  })
  const run =
    (body: unknown): Cost =>
    async (times) => {
      const program = Effect.gen(function* () {
        let sum = 0
        for (let turn = 0; turn < times; turn += 1)
          sum += (yield* Fiber.join(yield* Effect.forkChild(body))) as number
        return sum
      })
      check((await Effect.runPromise(program)) as number, times)
    }
  return { [FORK_JOIN.plain]: run(plain), [FORK_JOIN.generator]: run(generator), [FORK_JOIN.once]: run(once) }
}

/** Generators and a queue, and nothing that makes a fiber of them. */
async function floor(): Promise<Record<string, Cost>> {
  // oxlint-disable-next-line require-yield -- a generator that never waits is what is measured
  function* generator(): Generator<number, number, unknown> {
    return 1
  }
  function* once(): Generator<number, number, unknown> {
    yield 0
    return 1
  }
  const queue: { go(): void }[] = []
  class Task {
    readonly #body: Generator<number, number, unknown>
    value = 0

    constructor(body: Generator<number, number, unknown>) {
      this.#body = body
    }

    go(): void {
      const { done, value } = this.#body.next()
      this.value = value
      if (done !== true) queue.push(this)
    }
  }
  const run =
    (make: () => Generator<number, number, unknown>): Cost =>
    async (times) => {
      let sum = 0
      for (let turn = 0; turn < times; turn += 1) {
        const task = new Task(make())
        task.go()
        for (let next = queue.pop(); next !== undefined; next = queue.pop()) next.go()
        sum += task.value
      }
      check(sum, times)
    }
  return { [FORK_JOIN.generator]: run(generator), [FORK_JOIN.once]: run(once) }
}

function check(sum: number, times: number): void {
  if (sum !== times) throw new Error(`joined ${sum} of ${times}`)
}
