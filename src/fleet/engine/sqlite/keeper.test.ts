/**
 * Two connections to one file against a model: what is written, refused, counted and reported to who watches.
 *
 * Some groups have a request that SQLite refuses, so that they are taken back, and each is tried by itself.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { bytes, newName, text } from '../conformance.test.support.ts'
import { folderOf, runsHere } from './node.test.support.ts'
import type { Outcome, Request } from './requests.ts'

interface Kept {
  readonly revision: number
  readonly value: string
  readonly endsMs: number
}

/** A write of a connection: of which revision, if it asks for one. */
interface Write {
  readonly store: string
  readonly key: string
  readonly isDeleted: boolean
  readonly over: 'any' | 'none' | 'this' | 'another'
  readonly ttlMs: number
}

const WRITE: fc.Arbitrary<Write> = fc.record({
  store: fc.constantFrom('watched', 'other'),
  key: fc.constantFrom('a', 'b', 'c'),
  isDeleted: fc.boolean(),
  over: fc.constantFrom('any', 'none', 'this', 'another'),
  ttlMs: fc.constantFrom(0, 0, 10),
})
type Seen = readonly [key: string, revision: number, value: string | undefined]

const GROUP = fc.record({
  by: fc.constantFrom(0, 1),
  writes: fc.array(WRITE, { minLength: 0, maxLength: 5 }),
  hasBad: fc.boolean(),
  passMs: fc.constantFrom(0, 0, 6, 2000, 3_700_000),
})

const STORES = ['watched', 'other']
const KEYS = ['a', 'b', 'c']
const WATCH = 77

/** The model, and what has been asked of two connections. */
class World {
  nowMs = 1_700_000_000_000
  readonly keepers: readonly { run(requests: readonly Request[]): Outcome; close(): void }[]
  #id = 100
  #isOver = false
  readonly #all = new Map<string, Kept>()
  readonly #last = new Map<string, number>()
  #seen: Seen[] = []
  #written: Seen[] = []

  constructor(open: (nowMs: () => number) => World['keepers'][number]) {
    this.keepers = [open(() => this.nowMs), open(() => this.nowMs)]
    for (const store of STORES) this.#ask(0, 'openStore', store, 0)
    this.#watch()
  }

  #watch(): void {
    this.#ask(0, 'watch', WATCH, 'watched', false, undefined)
  }

  #run(by: number, requests: readonly Request[]): unknown[] {
    const { entries, replies, fatal, over } = this.keepers[by].run(requests)
    assert.equal(fatal, undefined)
    for (const [, { key, revision, bytes: found }] of entries)
      this.#seen.push([key, revision, found && text(found)])
    if (over.length > 0) this.#isOver = true
    return replies.map(([, value, failure]) => failure?.code ?? value)
  }

  #ask(by: number, ...request: readonly unknown[]): unknown {
    return this.#run(by, [[(this.#id += 1), ...request] as unknown as Request])[0]
  }

  #live(name: string): Kept | undefined {
    const found = this.#all.get(name)
    return found !== undefined && (found.endsMs === 0 || found.endsMs > this.nowMs) ? found : undefined
  }

  /** All of these in one group, with or without one that is refused. */
  write(by: number, writes: readonly Write[], hasBad: boolean): void {
    const requests = writes.map(({ store, key, isDeleted, over, ttlMs }) => {
      const id = (this.#id += 1)
      const current = this.#live(`${store}/${key}`)?.revision ?? 0
      const revision = { any: undefined, none: 0, this: current, another: current + 1 }[over]
      return [id, 'put', store, key, isDeleted ? undefined : bytes(String(id)), revision, ttlMs] as const
    })
    const bad = [0, 'put', 'other', 'a', {} as Uint8Array, undefined, 0] as const
    const replies = this.#run(by, hasBad ? [...requests, bad] : requests)
    if (hasBad) assert.equal(replies.pop(), 'FLEET_ENGINE')
    for (const [index, request] of requests.entries()) this.#expect(request, replies[index])
  }

  #expect([id, , store, key, value, revision, ttlMs]: Request<'put'>, reply: unknown): void {
    const name = `${store}/${key}`
    const current = this.#live(name)?.revision ?? 0
    if (revision !== undefined && revision !== current) return assert.equal(reply, 'FLEET_CONFLICT')
    if (value === undefined && current === 0) return assert.equal(reply, 0)
    assert.ok(typeof reply === 'number' && reply > Math.max(0, ...this.#last.values()))
    this.#last.set(store, reply)
    if (value === undefined) this.#all.delete(name)
    else this.#all.set(name, { revision: reply, value: String(id), endsMs: ttlMs && this.nowMs + ttlMs })
    if (store === 'watched') this.#written.push([key, reply, value && String(id)])
  }

  /** What stores count, and what was reported. */
  check(by: number): void {
    for (const store of STORES) {
      const count = KEYS.filter((key) => this.#live(`${store}/${key}`) !== undefined).length
      assert.equal(this.#ask(by, 'valuesIn', store), count)
      assert.equal(this.#ask(by, 'last', store), this.#last.get(store) ?? 0)
    }
    this.#run(0, [])
    // Who has not looked for an hour begins anew.
    if (this.#isOver) {
      const now = KEYS.map((key) => [key, this.#live(`watched/${key}`)] as const)
      this.#written = now.flatMap(([key, kept]) => (kept ? [[key, kept.revision, kept.value]] : []))
      this.#seen = []
      this.#isOver = false
      this.#watch()
    }
    const revisions = this.#seen.map(([, revision]) => revision)
    assert.deepEqual(
      revisions,
      revisions.toSorted((a, b) => a - b),
    )
    for (const revision of revisions) assert.ok(this.#written.some(([, each]) => each === revision))
    const lastOf = (all: readonly Seen[], key: string): Seen | undefined =>
      all.findLast((each) => each[0] === key)
    for (const key of KEYS) assert.deepEqual(lastOf(this.#seen, key), lastOf(this.#written, key))
  }
}

if (runsHere(import.meta.url)) {
  const { DatabaseSync } = await import('node:sqlite')
  const { Keeper } = await import('./keeper.ts')
  const { openFile } = await import('./open.ts')
  const folder = folderOf('sqlite-model')

  test('two connections write, count and report as a model does', () => {
    fc.assert(
      fc.property(fc.array(GROUP, { minLength: 1, maxLength: 12 }), (groups) => {
        const file = join(folder, newName())
        const world = new World((nowMs) => new Keeper(openFile(DatabaseSync, file, nowMs), file, nowMs))
        for (const { by, writes, hasBad, passMs } of groups) {
          world.nowMs += passMs
          world.write(by, writes, hasBad)
          world.check(by)
        }
        for (const keeper of world.keepers) keeper.close()
      }),
      { numRuns: Number(process.env['CORESPUN_SEEDS'] ?? 40) },
    )
  })
}
