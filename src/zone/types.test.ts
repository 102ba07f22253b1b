/**
 * The types of calls: compiling this file is the test.
 *
 * A line under `@ts-expect-error` that compiles fails the build. One test runs; all else is only compiled.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AnyZone, type Result, type Task, type Zone, zone } from './index.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
function is<Yes extends true>(): Yes | void {}

declare const target: AnyZone
declare function add(a: number, b?: string): number
declare function later(this: Task, ...all: string[]): Promise<Date>

/** Compiled, never called. */
export function calls(): void {
  const added = target.execute(add, [1])
  is<Same<typeof added, Promise<Result<number>>>>()
  void target.execute(add, [1, 'x'], { timeoutMs: 1 })
  void target.execute(() => 1)
  void target.execute(later)
  void target.execute(later, ['a', 'b'])
  void target.execute((a: number, b: number) => a + b, [1, 2])
  void target.execute('module', 'name')
  // @ts-expect-error an argument is missing
  void target.execute(add)
  // @ts-expect-error an argument is missing
  void target.execute(add, [])
  // @ts-expect-error an argument is of another type
  void target.execute(add, ['1'])
  // @ts-expect-error there are too many
  void target.execute(add, [1, 'x', 2])
  // @ts-expect-error the name of the export is missing
  void target.execute('module')
  exports()
  // @ts-expect-error an option that does not exist
  void target.execute(() => 1, [], { deadlineMs: 1 })

  const date = target.run(later, 'a')
  is<Same<typeof date, Promise<Date>>>()
  // @ts-expect-error an argument is missing
  void target.run(add)

  void target.broadcast(add, [1], { timeoutMs: 1 })
  void target.broadcast('code')
  target.broadcastSync(() => {}, [], { timeoutMs: 1 })
  // @ts-expect-error an argument is missing
  void target.broadcast(add)
  // @ts-expect-error an argument is missing
  target.broadcastSync(add)

  const fs = target.module<typeof import('node:fs')>('node:fs')
  void fs.existsSync('/')
  // @ts-expect-error an argument is missing
  void fs.existsSync()
  // @ts-expect-error no function
  void fs.constants

  const doubled = target.map([1, 2], (item) => item * 2)
  is<Same<typeof doubled, Promise<number[]>>>()
  const streamed = target.map(new Set([1]), async (item) => String(item))
  is<Same<typeof streamed, AsyncGenerator<string, void, undefined>>>()
}

/** The exports of a module. */
interface Exports {
  parse(text: string, radix?: number): number
  load(): Promise<Date>
  readonly version: string
}

function exports(): void {
  const any = target.execute<Exports>('./m.js', 'parse', ['1'], { timeoutMs: 1, from: import.meta.url })
  is<Same<typeof any, Promise<Result<number | Date>>>>()
  const parsed = target.execute<Exports, 'parse'>('./m.js', 'parse', ['1', 16])
  is<Same<typeof parsed, Promise<Result<number>>>>()
  const loaded = target.execute<Exports, 'load'>(new URL('file:///m.js'), 'load')
  is<Same<typeof loaded, Promise<Result<Date>>>>()
  const untyped = target.execute('./m.js', 'parse', ['1', 2, 3])
  is<Same<typeof untyped, Promise<Result>>>()
  // @ts-expect-error an export that does not exist
  void target.execute<Exports>('./m.js', 'pars', ['1'])
  // @ts-expect-error not a function
  void target.execute<Exports>('./m.js', 'version', [])
  // @ts-expect-error an argument is missing
  void target.execute<Exports>('./m.js', 'parse')
  // @ts-expect-error an argument is of another type
  void target.execute<Exports>('./m.js', 'parse', [1])
  // @ts-expect-error the arguments are those of another export
  void target.execute<Exports>('./m.js', 'load', ['1'])
  // @ts-expect-error an option that does not exist
  void target.execute<Exports>('./m.js', 'load', [], { deadlineMs: 1 })
  // @ts-expect-error the name is that of another export
  void target.execute<Exports, 'load'>('./m.js', 'parse', ['1'])

  const limited = target.with({ timeoutMs: 1, signal: undefined })
  is<Same<typeof limited, AnyZone>>()
  // @ts-expect-error an option that does not exist
  void target.with({ deadlineMs: 1 })
  void target.module<Exports>('./m.js', { from: import.meta.url, timeoutMs: 1 })
  void target.map([1], (item) => item, { timeoutMs: 1 })
}

/** Every kind of zone is one. */
async function sum(of: AnyZone): Promise<number> {
  const { value } = await of.execute((a: number, b: number) => a + b, [1, 2])
  const [first = 0] = await of.map([value], (item) => item)
  return of.reduce([first, 4], (total, item) => total + item, 0)
}

test('what takes an AnyZone takes a zone of workers and the calling thread itself', async () => {
  const made: Zone = zone.create('types', { workers: 1 })
  const found: AnyZone = zone.get('types')
  const limited = made.with({ timeoutMs: 60_000 }).with({ signal: new AbortController().signal })
  try {
    assert.deepEqual(
      await Promise.all([made, zone.node, zone.main, found, zone.current, limited].map(sum)),
      [7, 7, 7, 7, 7, 7],
    )
  } finally {
    await made.close()
  }
})
