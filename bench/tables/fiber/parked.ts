/**
 * Bytes of heap per parked fiber: a process of its own, with the collector at hand.
 *
 * So many fibers are forked that wait for what never comes, and all are held; the heap before and after, each
 * after two full collections.
 */
import { setImmediate } from 'node:timers/promises'

const [kind, words] = process.argv.slice(2) as [string, string]
const count = Number(words)
const { gc } = globalThis as { gc?: () => void }

const makers: Record<string, () => Promise<() => unknown>> = {
  async 'corespun, generator that waits'() {
    const { fork, never } = await import('corespun/fiber')
    function* body(): Generator<object, void, unknown> {
      yield* never()
    }
    return () => fork(body)
  },
  async 'corespun, call with an argument'() {
    const { fork, never } = await import('corespun/fiber')
    function* body(id: number): Generator<object, number, unknown> {
      yield* never()
      return id
    }
    let id = 0
    return () => fork(body((id += 1)))
  },
  async 'corespun, function* in a loop'() {
    const { fork, never } = await import('corespun/fiber')
    let id = 0
    return () => {
      const own = (id += 1)
      return fork(function* () {
        yield* never()
        return own
      })
    }
  },
  async 'corespun, generator that joins'() {
    const { fork, never } = await import('corespun/fiber')
    const target = fork(never())
    function* body(): Generator<object, void, unknown> {
      yield* target.join()
    }
    return () => fork(body)
  },
  async 'corespun, generator that sleeps'() {
    const { fork, sleep } = await import('corespun/fiber')
    function* body(): Generator<object, void, unknown> {
      yield* sleep(1e9)
    }
    return () => fork(body)
  },
  async 'effect, generator that waits'() {
    const { Effect } = await import('effect')
    const body = Effect.gen(function* () {
      yield* Effect.never
    })
    return () => Effect.runFork(body)
  },
  async 'effect, never'() {
    const { Effect } = await import('effect')
    return () => Effect.runFork(Effect.never)
  },
  async 'bare generator'() {
    function* body(): Generator<number, number, unknown> {
      return (yield 1) as number
    }
    return () => {
      const made = body()
      made.next()
      return made
    }
  },
  async 'async function'() {
    const never = new Promise<void>(() => {})
    const body = async (): Promise<void> => {
      await never
    }
    return () => body()
  },
}

const make = await makers[kind]()
for (let turn = 0; turn < 1000; turn += 1) make()
const held: unknown[] = new Array(count).fill(undefined)
const before = await heapBytes()
for (let turn = 0; turn < count; turn += 1) held[turn] = make()
const bytes = ((await heapBytes()) - before) / count
if (held.some((one) => one === undefined)) throw new Error('not all are held')
process.stdout.write(JSON.stringify({ bytes }))
process.exit(0)

async function heapBytes(): Promise<number> {
  for (let turn = 0; turn < 2; turn += 1) {
    await setImmediate()
    gc?.()
  }
  return process.memoryUsage().heapUsed
}
