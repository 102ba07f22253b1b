/**
 * What durable runs promise, on an engine: the tests of memory and of a file.
 *
 * A process that dies is played by a connection that is closed under its runs: nothing that they write or
 * extend arrives any more. test/fleet kills processes.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { until } from '../base/wait.test.support.ts'
import { Schedule, acquireRelease, addFinalizer, all, catchAll, forEach, fork, race } from '../fiber/index.ts'
import { type Fleet, NonRetryableError } from '../fleet/index.ts'
import { register } from '../transport/index.ts'
import { zone } from '../zone/index.ts'
import { againTests } from './again.test.support.ts'
import { durable, id, now, pause, random, runs, signal, step } from './index.ts'
import type { Durable, RunStep, Runs } from './index.ts'
import { type Begin, HOUR_MS, type Named, SOON, gate } from './machine.test.support.ts'
import { moreTests } from './more.test.support.ts'

export class Receipt {
  readonly cents: number
  constructor(cents: number) {
    this.cents = cents
  }
}
register(Receipt, { cid: 'test.Receipt' })
class Refused extends Error {}
register(Refused, { cid: 'test.Refused' })

export function runTests(engine: string, connect: (name: string) => Promise<Fleet>): void {
  let names = 0
  const named = (what: string, body: (begin: Begin) => Promise<void>): void => {
    test(`${engine}: ${what}`, { timeout: 180_000 }, async () => {
      const name = `runs ${++names}`
      // What is kept in memory is there as long as anybody is connected.
      const fleets: Fleet[] = [await connect(name)]
      const opened: Runs<readonly Durable[]>[] = []
      const begin: Begin = async (definitions, options = {}) => {
        const fleet = await connect(name)
        fleets.push(fleet)
        const work = await runs(fleet, { definitions, ...SOON, ...options })
        opened.push(work)
        const { engine } = fleet
        const valuesIn = (kept: string): Promise<number> => engine.valuesIn(kept)
        return { work, die: () => fleet.close(), queues: () => fleet.queues(), valuesIn }
      }
      try {
        await body(begin)
      } finally {
        await Promise.all(opened.map((work) => work.close({ timeoutMs: 0 })))
        await Promise.all(fleets.map((fleet) => fleet.close()))
      }
    })
  }
  for (const declare of [stepTests, limitTests, crashTests, raceTests, changeTests]) declare(named)
  for (const declare of [waitTests, leaveTests, cancelTests, undoTests, finalizerTests, lookTests])
    declare(named)
  againTests(named)
  moreTests(named)
}

function stepTests(named: Named): void {
  named('a run returns what its function returns, and steps copies that have their class', async (begin) => {
    const made = new Receipt(250)
    const order = durable('order', function* (cents: number) {
      const receipt = yield* step('charge', async (n: number) => (n === 250 ? made : undefined), [cents])
      const total = yield* step('total', (a: number, b: number) => a + b, [cents, 1])
      return { receipt, total, isSame: receipt === made }
    })
    const { work } = await begin([order])
    const run = await work.start('order', 250)
    const { receipt, total, isSame } = await run.result()
    assert.ok(receipt instanceof Receipt)
    assert.deepEqual([receipt.cents, total, isSame], [250, 251, false])
  })

  named(
    'an error of a step is caught in the run, and one of the run is that of its result',
    async (begin) => {
      const failing = durable('failing', function* (isCaught: boolean) {
        const refused = step('refuse', () => {
          throw new Refused('no')
        })
        if (!isCaught) return yield* refused
        return yield* catchAll(refused, (error) => `caught ${(error as Error).message}`)
      })
      const thrown = durable('thrown', function* () {
        throw new RangeError('a defect')
      })
      const strange = durable('strange', function* () {
        return yield* step('strange', () => Symbol('x') as unknown)
      })
      const { work } = await begin([failing, thrown, strange])
      assert.equal(await (await work.start('failing', true)).result(), 'caught no')
      await assert.rejects((await work.start('failing', false)).result(), Refused)
      await assert.rejects((await work.start('thrown', undefined)).result(), RangeError)
      await assert.rejects((await work.start('strange', undefined)).result(), { name: 'TransportError' })
    },
  )

  named('steps are retried by their schedule, with one key, and not after what ends them', async (begin) => {
    const attempts: string[] = []
    const flaky = durable('flaky', function* (name: string) {
      const fn = ({ attempt, key }: { attempt: number; key: string }) => {
        attempts.push(`${key} ${attempt}`)
        if (name === 'final') throw new NonRetryableError('never')
        if (attempt < 3) throw new Error('busy')
        return attempt
      }
      return yield* step(name, fn, [], { retry: Schedule.exponential(1).and(Schedule.recurs(5)) })
    })
    const { work } = await begin([flaky])
    const run = await work.start('flaky', 'charge')
    assert.equal(await run.result(), 3)
    const [key] = attempts[0].split(' ')
    assert.deepEqual(attempts, [`${key} 1`, `${key} 2`, `${key} 3`])
    const { steps } = await run.state()
    assert.deepEqual([steps.length, steps[0].failures, String(steps[0].error)], [1, 2, 'Error: busy'])
    assert.ok(steps[0].startedAt instanceof Date)
    await assert.rejects((await work.start('flaky', 'final')).result(), { name: 'NonRetryableError' })
    assert.equal(attempts.length, 4)
  })
}

function limitTests(named: Named): void {
  named('a step that takes too long is aborted, and may be retried', async (begin) => {
    const reasons: unknown[] = []
    const slow = durable('slow', function* (recurs: number) {
      const fn = ({ attempt, signal }: { attempt: number; signal?: AbortSignal }) =>
        new Promise<number>((resolve) => {
          if (attempt > 1) resolve(attempt)
          signal?.addEventListener('abort', () => reasons.push((signal.reason as { code: string }).code))
        })
      return yield* step('slow', fn, [], { timeoutMs: 5, retry: Schedule.recurs(recurs) })
    })
    const { work } = await begin([slow])
    assert.equal(await (await work.start('slow', 1)).result(), 2)
    await assert.rejects((await work.start('slow', 0)).result(), { code: 'RUN_STEP_TIMEOUT' })
    assert.deepEqual(reasons, ['RUN_STEP_TIMEOUT', 'RUN_STEP_TIMEOUT'])
  })

  named('a step may run in a zone', async (begin) => {
    await using heavy = zone.create(`durable ${randomUUID()}`, { workers: 1 })
    const square = durable('square', function* (n: number) {
      return yield* step('square', (value: number, { attempt }) => [value * value, attempt], [n], {
        zone: heavy,
      })
    })
    const { work } = await begin([square])
    assert.deepEqual(await (await work.start('square', 7)).result(), [49, 1])
  })

  named('the time, random numbers and ids are the same after a crash', async (begin) => {
    const stop = gate()
    const seen: unknown[][] = []
    const values = durable('values', function* () {
      const found = [yield* now(), yield* random(), yield* id(), yield* random(), yield* id()]
      seen.push(found)
      if (seen.length === 1) yield* step('stop', () => stop.opened)
      return found
    })
    const first = await begin([values])
    const run = await first.work.start('values', undefined, { key: 'v' })
    await until(() => seen.length === 1)
    await first.die()
    const { work } = await begin([values])
    const found = (await work.get('values', run.key).result()) as [number, number, string, number, string]
    assert.deepEqual(seen, [found, found])
    assert.ok(found[1] >= 0 && found[1] < 1 && found[1] !== found[3] && found[2] !== found[4])
    assert.match(found[2], /^[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
    // All of its bits are of use.
    assert.notEqual(found[2].slice(0, 8), found[2].slice(-8))
  })
}

function crashTests(named: Named): void {
  named('a recorded step is not run again, one that ran when its process died is', async (begin) => {
    const calls: string[] = []
    const stop = gate()
    const order = durable('order', function* () {
      const a = yield* step('a', () => calls.push('a'))
      const b = yield* step('b', async () => {
        if (calls.push('b') === 2) await stop.opened
        return 'b'
      })
      return [a, b, yield* step('c', () => calls.push('c'))]
    })
    const first = await begin([order])
    const run = await first.work.start('order', undefined, { key: 'k' })
    await until(() => calls.length === 2)
    await first.die()
    stop.open()
    const { work } = await begin([order])
    const again = work.get('order', run.key)
    assert.deepEqual(await again.result(), [1, 'b', 4])
    assert.deepEqual(calls, ['a', 'b', 'b', 'c'])
    const { resumedCount, steps, status, endedAt } = await again.state()
    assert.deepEqual([resumedCount, steps.map(({ name }) => name), status], [1, ['a', 'b', 'c'], 'done'])
    assert.ok(endedAt instanceof Date)
  })

  named('fibers of a run continue each at its own step, whichever is faster', async (begin) => {
    const calls: string[] = []
    const stop = gate()
    let isFirst = true
    function* part(name: string) {
      const one = yield* step('one', async () => void calls.push(`${name} one`))
      yield* step('two', async () => {
        calls.push(`${name} two`)
        if (isFirst && name !== 'b') await stop.opened
      })
      return [name, one]
    }
    const wide = durable('wide', function* () {
      const parts = yield* all([part('a'), part('b'), part('c')])
      const items = yield* forEach([1, 2, 3], (n) => step('item', (n: number) => n * 2, [n]), {
        concurrency: 2,
      })
      const forked = fork(step('forked', () => 'f'))
      return [parts.map(([name]) => name), items, yield* forked.join()]
    })
    const first = await begin([wide])
    const run = await first.work.start('wide', undefined, { key: 'k' })
    await until(() => calls.length === 6)
    // Only that of b is recorded.
    await until(async () => (await run.state()).steps.length === 4)
    await first.die()
    isFirst = false
    const { work } = await begin([wide])
    assert.deepEqual(await work.get('wide', 'k').result(), [['a', 'b', 'c'], [2, 4, 6], 'f'])
    assert.deepEqual(calls.slice(6).toSorted(), ['a two', 'c two'])
  })
}

function raceTests(named: Named): void {
  named('a race has the same winner after a crash, and its losers do not begin again', async (begin) => {
    const calls: string[] = []
    const stop = gate()
    const racing = durable('racing', function* () {
      const never = step('never', () => (calls.push('never'), new Promise<string>(() => {})))
      const winner = yield* race([never, step('fast', () => (calls.push('fast'), 'fast'))])
      yield* step('stop', () => (calls.push('stop') === 3 ? stop.opened : undefined))
      const second = yield* race([step('quick', () => 'quick'), pause(HOUR_MS)])
      return [winner, second]
    })
    const first = await begin([racing])
    await first.work.start('racing', undefined, { key: 'k' })
    await until(() => calls.length === 3)
    await first.die()
    const { work } = await begin([racing])
    const run = work.get('racing', 'k')
    assert.deepEqual(await run.result(), ['fast', 'quick'])
    assert.deepEqual(calls, ['never', 'fast', 'stop', 'stop'])
    await until(async () => (await run.state()).steps.filter(({ status }) => status === 'left').length === 2)
  })

  named('attempts are counted over a crash', async (begin) => {
    const attempts: number[] = []
    const flaky = durable('flaky', function* () {
      const fn = ({ attempt }: { attempt: number }) => {
        attempts.push(attempt)
        throw new Error(`attempt ${attempt}`)
      }
      return yield* step('flaky', fn, [], { retry: Schedule.spaced(300).and(Schedule.recurs(2)) })
    })
    const first = await begin([flaky])
    const run = await first.work.start('flaky', undefined, { key: 'k' })
    await until(async () => (await run.state()).steps[0]?.failures === 1)
    await first.die()
    const { work } = await begin([flaky])
    await assert.rejects(work.get('flaky', 'k').result(), /attempt 3/)
    assert.deepEqual(attempts, [1, 2, 3])
  })

  named('closed runs let their steps end, and are continued', async (begin) => {
    const calls: string[] = []
    const stop = gate()
    const two = durable('two', function* () {
      yield* step('a', async () => (calls.push('a'), await stop.opened))
      yield* step('b', () => calls.push('b'))
    })
    const first = await begin([two])
    await first.work.start('two', undefined, { key: 'k' })
    await until(() => calls.length === 1)
    const closing = first.work.close()
    assert.throws(() => first.work.get('two', 'k'), { code: 'RUN_CLOSED' })
    stop.open()
    await closing
    assert.deepEqual(calls, ['a'])
    const { work } = await begin([two])
    await work.get('two', 'k').result()
    assert.deepEqual(calls, ['a', 'b'])
  })
}

function changeTests(named: Named): void {
  for (const [what, names, asked, recorded] of [
    ['renamed', ['a', 'x', 'c'], 'x', 'b'],
    ['added', ['a', 'new', 'b', 'c'], 'new', 'b'],
    ['removed', ['a', 'c'], 'stop', 'b'],
    ['removed at the end', ['a'], 'stop', 'b'],
  ] as const)
    named(`a run whose step was ${what} waits for code that fits, and then continues`, async (begin) => {
      const calls: string[] = []
      const stop = gate()
      const abc = (steps: readonly string[]) =>
        durable('abc', function* () {
          for (const name of steps) yield* step(name, () => calls.push(name))
          yield* step('stop', () => (calls.length === 3 ? stop.opened : undefined))
          return calls.length
        })
      const first = await begin([abc(['a', 'b', 'c'])])
      await first.work.start('abc', undefined, { key: 'k' })
      await until(() => calls.length === 3)
      await first.die()
      const other = await begin([abc(names)])
      const run = other.work.get('abc', 'k')
      await until(async () => (await run.state()).status === 'diverged')
      const { error } = await run.state()
      assert.equal((error as { code: string }).code, 'RUN_DIVERGED')
      assert.deepEqual((error as { facts: unknown }).facts, { name: 'abc', key: 'k', asked, recorded })
      assert.deepEqual(calls, ['a', 'b', 'c'])
      await other.work.close()
      calls.push('deployed')
      const { work } = await begin([abc(['a', 'b', 'c'])])
      assert.equal(await work.get('abc', 'k').result(), 4)
    })
}

function waitTests(named: Named): void {
  named('a pause ends by the clock on the wall, over a crash', async (begin) => {
    const paused = durable('paused', function* () {
      const before = yield* now()
      yield* pause(700)
      return (yield* now()) - before
    })
    const first = await begin([paused])
    const run = await first.work.start('paused', undefined, { key: 'k' })
    // On a busy machine the pause may be over already.
    await until(async () => (await run.state()).steps.some(({ name }) => name === 'pause()'))
    await first.die()
    const { work } = await begin([paused])
    assert.ok((await work.get('paused', 'k').result()) >= 699)
  })

  named('signals are received before, during and after their wait, each once', async (begin) => {
    const letters = durable('letters', function* () {
      const early = yield* signal<string>('early')
      const one = yield* signal<Receipt>('letter')
      const two = yield* signal<string>('letter', { timeoutMs: HOUR_MS })
      const none = yield* signal<string>('none', { timeoutMs: 1 })
      yield* signal('end')
      const late = yield* signal<string>('none')
      return [early, one.cents, two, none, late]
    })
    const { work } = await begin([letters])
    const run = await work.start('letters', undefined)
    await run.signal('early', 'e')
    await run.signal('letter', new Receipt(1))
    await run.signal('letter', 'second')
    // A signal of that name is kept from here on: the wait for it has ended.
    await until(async () =>
      (await run.state()).steps.some((one) => one.name === 'signal(none)' && one.status === 'done'),
    )
    await run.signal('none', 'kept')
    await run.signal('end')
    assert.deepEqual(await run.result(), ['e', 1, 'second', undefined, 'kept'])
    await assert.rejects(run.signal('end'), { code: 'RUN_ENDED' })
    await assert.rejects(run.signal(''), { code: 'RUN_ARGUMENT' })
    const large = Buffer.alloc(2_000_000)
    const waiting = await work.start('letters', undefined)
    await assert.rejects(waiting.signal('early', large), { code: 'RUN_TOO_LARGE' })
  })
}

function leaveTests(named: Named): void {
  named('a run that waits for long leaves memory, and a signal or the time wakes it', async (begin) => {
    const calls: string[] = []
    const cleaned: string[] = []
    const approval = durable('approval', function* (ms: number) {
      yield* step('ask', () => calls.push('ask'))
      try {
        const found = yield* signal<string>('approved', { timeoutMs: ms })
        yield* step('report', () => calls.push('report'))
        return found
      } finally {
        cleaned.push('a finally block')
      }
    })
    const { work } = await begin([approval], { idleMs: 20 })
    const run = await work.start('approval', HOUR_MS)
    await until(async () => (await run.state()).status === 'waiting')
    assert.equal(cleaned.length, 1)
    await run.signal('other', 'not this one')
    await run.signal('approved', 'yes')
    assert.equal(await run.result(), 'yes')
    const due = await work.start('approval', 600)
    assert.equal(await due.result(), undefined)
    assert.deepEqual(calls, ['ask', 'report', 'ask', 'report'])
  })

  named('a run is cancelled wherever it is', async (begin) => {
    const reasons: unknown[] = []
    const calls: string[] = []
    const long = durable('long', function* (isStep: boolean) {
      try {
        if (isStep)
          yield* step('long', ({ signal }) => {
            calls.push('long')
            return new Promise((resolve) => signal?.addEventListener('abort', () => resolve(reasons.push(1))))
          })
        else yield* signal('never')
      } finally {
        yield* catchAll(
          step('undo', () => calls.push('undo')),
          () => undefined,
        )
      }
    })
    const { work } = await begin([long], { idleMs: 20 })
    const other = await begin([long], { runsMax: 0 })
    for (const isStep of [true, false]) {
      const run = await work.start('long', isStep, { key: String(isStep) })
      if (isStep) await until(() => calls.length === 1)
      else await until(async () => (await run.state()).status === 'waiting')
      assert.equal(await other.work.get('long', run.key).cancel(), true)
      assert.equal(await run.cancel(), false)
      await assert.rejects(run.result(), { code: 'RUN_CANCELLED' })
    }
    await until(() => reasons.length === 1)
    assert.deepEqual(calls, ['long', 'undo', 'undo'])
    const atOnce = await work.start('long', false)
    assert.equal(await atOnce.cancel({ now: true }), true)
    await assert.rejects(atOnce.result(), { code: 'RUN_CANCELLED' })
    assert.equal(calls.length, 3)
  })
}

function cancelTests(named: Named): void {
  named('of several calls that cancel a run at once, one has', async (begin) => {
    const never = durable('never', () => signal('never'))
    const { work } = await begin([never], { idleMs: 20 })
    const other = await begin([never], { runsMax: 0 })
    for (const now of [true, false]) {
      const started = await Promise.all(Array.from({ length: 10 }, () => work.start('never', undefined)))
      const ends = started.map((run) => {
        const handles = [run, other.work.get('never', run.key), run]
        return Promise.all(handles.map((each) => each.cancel({ now })))
      })
      for (const each of await Promise.all(ends)) assert.deepEqual(each.toSorted(), [false, false, true])
      for (const run of started) await assert.rejects(run.result(), { code: 'RUN_CANCELLED' })
    }
  })
}

function undoTests(named: Named): void {
  named('a cancelled run undoes its steps in reverse order, over a crash, each once', async (begin) => {
    const calls: string[] = []
    const stop = gate()
    let isFirst = true
    const booked = (name: string) =>
      acquireRelease(
        step(name, () => void calls.push(name)),
        function* (_, { kind }) {
          if (kind === 'success') return
          yield* step(`undo ${name}`, () => {
            calls.push(`undo ${name}`)
            return name === 'hotel' && isFirst ? stop.opened : undefined
          })
        },
      )
    const trip = durable('trip', function* () {
      for (const name of ['flight', 'hotel', 'car']) yield* booked(name)
      yield* all([signal('paid'), pause(HOUR_MS)])
    })
    const first = await begin([trip])
    const run = await first.work.start('trip', undefined, { key: 'k' })
    await until(async () => (await run.state()).steps.length === 5)
    assert.equal(await run.cancel(), true)
    await until(() => calls.length === 5)
    assert.deepEqual([(await run.state()).status, await run.cancel()], ['cancelling', false])
    await first.die()
    isFirst = false
    const { work } = await begin([trip])
    const again = work.get('trip', 'k')
    await assert.rejects(again.result(), { code: 'RUN_CANCELLED' })
    assert.deepEqual(calls.slice(3), ['undo car', 'undo hotel', 'undo hotel', 'undo flight'])
    const { status, steps } = await again.state()
    assert.deepEqual([status, steps.filter((one) => one.status === 'done').length], ['cancelled', 6])
  })

  named('what its finalizers fail with is the result of a cancelled run', async (begin) => {
    const failing = durable('failing', function* (count: number) {
      for (let n = 0; n < count; n++)
        addFinalizer(() => step(`undo ${n}`, () => Promise.reject(new Refused(`no ${n}`))))
      yield* signal('never')
    })
    const { work } = await begin([failing], { idleMs: 20 })
    for (const count of [1, 2]) {
      const run = await work.start('failing', count)
      await until(async () => (await run.state()).status === 'waiting')
      await run.cancel()
      await assert.rejects(run.result(), count === 1 ? Refused : { name: 'AggregateError' })
      assert.equal((await run.state()).status, 'failed')
    }
  })
}

function finalizerTests(named: Named): void {
  named('a run that fails undoes its steps, too', async (begin) => {
    const calls: string[] = []
    const failing = durable('failing', function* () {
      addFinalizer(({ kind }) => step('undo', (of: string) => calls.push(of), [kind]))
      yield* step('refuse', () => Promise.reject(new Refused('no')))
    })
    const { work } = await begin([failing])
    await assert.rejects((await work.start('failing', undefined)).result(), Refused)
    assert.deepEqual(calls, ['failure'])
  })

  named('finalizers may wait for long, outside of memory too', async (begin) => {
    const calls: string[] = []
    const stopped = durable('stopped', function* () {
      try {
        yield* signal('never')
      } finally {
        calls.push('wait')
        yield* pause(600)
        yield* signal('undo')
        calls.push('undo')
      }
    })
    const { work } = await begin([stopped], { idleMs: 20 })
    const run = await work.start('stopped', undefined)
    await until(async () => (await run.state()).status === 'waiting')
    await run.cancel()
    const isOver = ({ name, status }: RunStep): boolean => name === 'pause()' && status === 'done'
    await until(async () => (await run.state()).steps.some(isOver))
    await run.signal('undo')
    await assert.rejects(run.result(), { code: 'RUN_CANCELLED' })
    assert.equal(calls.filter((call) => call === 'undo').length, 1)
  })
}

function lookTests(named: Named): void {
  named('runs are listed by parts, looked at and forgotten', async (begin) => {
    const echo = durable('echo', function* (n: number) {
      return yield* step('echo', (value: number) => value, [n])
    })
    const { work, queues } = await begin([echo])
    for (let n = 0; n < 5; n++) await work.start('echo', n, { key: `run ${n}` })
    const seen = (await queues()).map(({ kind, zone, dead }) => ({ kind, zone, dead }))
    assert.deepEqual(seen, [{ kind: 'runs', zone: 'echo', dead: 0 }])
    for (let n = 0; n < 5; n++) assert.equal(await work.get('echo', `run ${n}`).result(), n)
    const keys: string[] = []
    let after: string | undefined
    do {
      const page = await work.list('echo', { itemsMax: 2, ...(after !== undefined && { after }) })
      for (const { key, status } of page.items) keys.push(`${key} ${status}`)
      after = page.next
    } while (after !== undefined)
    assert.deepEqual(
      keys.toSorted(),
      [0, 1, 2, 3, 4].map((n) => `run ${n} done`),
    )
    const run = work.get('echo', 'run 1')
    assert.equal(await run.forget(), true)
    await assert.rejects(run.state(), { code: 'RUN_UNKNOWN' })
    await assert.rejects(run.cancel(), { code: 'RUN_UNKNOWN' })
    assert.equal(await (await work.start('echo', 9, { key: 'run 1' })).result(), 9)
  })

  named('a result may be waited for no longer than a while', async (begin) => {
    const waiting = durable('waiting', function* () {
      yield* signal('never')
    })
    const { work } = await begin([waiting])
    const run = await work.start('waiting', undefined)
    await assert.rejects(run.result({ timeoutMs: 10 }), { code: 'RUN_TIMEOUT' })
    assert.equal(await run.forget(), false)
  })

  named('what is too large is refused, and the run goes on or fails with that', async (begin) => {
    const large = durable('large', function* (what: unknown) {
      if (what === 'value') return Buffer.alloc(2_000_000)
      if (what === 'error') throw Object.assign(new Refused('large'), { bytes: Buffer.alloc(2_000_000) })
      const made = step('made', () => Buffer.alloc(2_000_000))
      return yield* catchAll(made, (error) => (error as { code: string }).code)
    })
    const { work } = await begin([large])
    await assert.rejects(work.start('large', Buffer.alloc(2_000_000)), { code: 'RUN_TOO_LARGE' })
    assert.equal(await (await work.start('large', 'step')).result(), 'RUN_TOO_LARGE')
    await assert.rejects((await work.start('large', 'value')).result(), { code: 'RUN_TOO_LARGE' })
    await assert.rejects((await work.start('large', 'error')).result(), { code: 'RUN_TOO_LARGE' })
  })

  named('many steps that end at once share records', async (begin) => {
    const wide = durable('wide', function* (count: number) {
      const items = Array.from({ length: count }, (_, index) => index)
      const sizes = yield* forEach(items, (n) => step('item', (n: number) => Buffer.alloc(40_000, n), [n]), {
        concurrency: 64,
      })
      return sizes.reduce((sum, { length }) => sum + length, 0)
    })
    const { work } = await begin([wide])
    assert.equal(await (await work.start('wide', 100)).result(), 4_000_000)
  })
}
