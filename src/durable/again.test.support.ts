/**
 * Runs that are run again, copied, and changed in the middle: on an engine.
 *
 * They are a part of runs.test.support.ts.
 */
import assert from 'node:assert/strict'
import { until } from '../base/wait.test.support.ts'
import { acquireRelease, all, catchAll, race } from '../fiber/index.ts'
import { durable, id, patched, pause, random, signal, step } from './index.ts'
import { HOUR_MS, type Named, gate } from './machine.test.support.ts'

export function againTests(named: Named): void {
  for (const declare of [failedTests, undoneTests, fromTests, forkTests, patchTests]) declare(named)
}

function failedTests(named: Named): void {
  named(
    'a run that has failed is run again at its step, with the same key, and no other runs',
    async (begin) => {
      const calls: string[] = []
      let isBroken = true
      const order = durable('order', function* (cents: number) {
        const ids = [yield* id(), yield* random()]
        const [a] = yield* all([step('a', () => calls.push('a')), step('b', () => calls.push('b'))])
        const paid = yield* step('charge', ({ key }) => {
          calls.push(key)
          if (isBroken) throw new Error('no bank')
          return cents
        })
        return [a, paid, ids]
      })
      const { work } = await begin([order])
      const run = await work.start('order', 250)
      await assert.rejects(run.result(), /no bank/)
      await assert.rejects(run.again({ from: 'nothing' }), { code: 'RUN_ARGUMENT' })
      await run.again()
      await assert.rejects(run.result(), /no bank/)
      isBroken = false
      await run.again()
      const [, paid, ids] = await run.result()
      assert.deepEqual([paid, calls.length, new Set(calls.slice(2)).size], [250, 5, 1])
      await assert.rejects(run.again(), { code: 'RUN_NOT_AGAIN', message: /it is done/ })
      const { steps } = await run.state()
      assert.deepEqual(
        steps.map(({ key }) => key),
        ['0/a#1', '1/b#1', 'charge#1'],
      )
      const copy = await run.fork({ from: 'charge' })
      assert.deepEqual((await copy.result())[2], ids)
      assert.notEqual(calls[5], calls[4])
      assert.equal(await run.forget(), true)
    },
  )

  named('code that has failed between steps is run again as it is now', async (begin) => {
    const calls: string[] = []
    let isBroken = true
    const buggy = durable('buggy', function* () {
      yield* step('a', () => calls.push('a'))
      yield* catchAll(
        step('caught', () => Promise.reject(new Error('caught'))),
        () => undefined,
      )
      if (isBroken) throw new TypeError('a bug')
      return yield* step('b', () => calls.push('b'))
    })
    const { work } = await begin([buggy])
    const run = await work.start('buggy', undefined)
    await assert.rejects(run.result(), TypeError)
    isBroken = false
    await run.again()
    assert.equal(await run.result(), 2)
    assert.deepEqual(calls, ['a', 'b'])
  })
}

function undoneTests(named: Named): void {
  named('a run that has undone its steps is run again from where it is asked to', async (begin) => {
    const calls: string[] = []
    let isFull = true
    const booked = (name: string) =>
      acquireRelease(
        step(name, () => {
          calls.push(name)
          if (name === 'hotel' && isFull) throw new Error('full')
        }),
        function* (_, { kind }) {
          if (kind !== 'success') yield* step(`undo ${name}`, () => void calls.push(`undo ${name}`))
        },
      )
    const trip = durable('trip', function* () {
      yield* booked('flight')
      yield* booked('hotel')
    })
    const { work } = await begin([trip])
    const run = await work.start('trip', undefined)
    await assert.rejects(run.result(), /full/)
    await assert.rejects(run.again(), { code: 'RUN_NOT_AGAIN', message: /"hotel#1".*"undo flight#1"/ })
    isFull = false
    await run.again({ from: 'flight' })
    await run.result()
    assert.deepEqual(calls, ['flight', 'hotel', 'undo flight', 'flight', 'hotel'])
  })
}

function fromTests(named: Named): void {
  named('a run that has diverged continues from a step, and receives its signals again', async (begin) => {
    const calls: string[] = []
    const stop = gate()
    const code = (name: string) =>
      durable('code', function* () {
        yield* step('a', () => calls.push('a'))
        const letter = yield* signal<string>('letter')
        yield* step(name, () => calls.push(name))
        if (name === 'old') yield* step('stop', () => stop.opened)
        return letter
      })
    const first = await begin([code('old')])
    const run = await first.work.start('code', undefined, { key: 'k' })
    await until(async () => (await run.state()).awaits.includes('letter'))
    await run.signal('letter', 'a letter')
    await until(async () =>
      (await run.state()).steps.some(({ name, status }) => name === 'old' && status === 'done'),
    )
    assert.deepEqual((await run.state()).awaits, [])
    await first.die()
    const { work } = await begin([code('new')])
    const again = work.get('code', 'k')
    await until(async () => (await again.state()).status === 'diverged')
    await again.again() // it is tried again as it is, and is running meanwhile
    await until(async () => {
      const done = again.again({ from: 'signal(letter)' }).then(() => true)
      return done.catch((error: unknown) => {
        if ((error as { code?: unknown }).code !== 'RUN_NOT_AGAIN') throw error
        return false
      })
    })
    assert.equal(await again.result(), 'a letter')
    assert.deepEqual(calls, ['a', 'old', 'new'])
  })
}

function forkTests(named: Named): void {
  named('a copy goes on at a step, beside the run that it is of', async (begin) => {
    const calls: string[] = []
    const work3 = durable('work', function* (n: number) {
      for (const name of ['a', 'b', 'c']) yield* step(name, () => void calls.push(`${name} ${n}`))
      yield* race([signal('never'), pause(HOUR_MS)])
    })
    const { work } = await begin([work3])
    const run = await work.start('work', 7)
    await until(() => calls.length === 3)
    await until(async () => (await run.state()).awaits.includes('never'))
    const copy = await run.fork({ from: 'b', key: 'copy' })
    await until(() => calls.length === 5)
    assert.deepEqual(calls.slice(3), ['b 7', 'c 7'])
    assert.equal((await run.fork({ from: 'a', key: 'copy' })).key, copy.key)
    await assert.rejects(run.fork({} as never), { code: 'RUN_ARGUMENT' })
    await run.cancel()
    await assert.rejects(run.result(), { code: 'RUN_CANCELLED' })
    await assert.rejects(run.again(), { code: 'RUN_NOT_AGAIN' })
    await until(async () => (await copy.state()).awaits.includes('never'))
    await copy.cancel({ now: true })
    const third = await copy.fork({ from: 'c#1' })
    await until(() => calls.length === 6)
    await third.cancel({ now: true })
    assert.equal(calls[5], 'c 7')
  })

  named('a run whose input has no room beside its error is not run again', async (begin) => {
    const large = durable('large', function* (_: Uint8Array) {
      yield* step('fail', () =>
        Promise.reject(Object.assign(new Error('large'), { bytes: Buffer.alloc(600_000) })),
      )
    })
    const { work } = await begin([large])
    const run = await work.start('large', Buffer.alloc(600_000))
    await assert.rejects(run.result(), /large/)
    await assert.rejects(run.again(), { code: 'RUN_NOT_AGAIN', message: /its input is not kept/ })
  })
}

function patchTests(named: Named): void {
  named('a change is without its patched() when no run takes the old path any more', async (begin) => {
    const calls: string[] = []
    const code = (isPatched: boolean, name = 'b') =>
      durable('code', function* () {
        if (!isPatched || (yield* patched('check'))) yield* step('check', () => void calls.push('check'))
        yield* signal('go')
        yield* step(name, () => void calls.push(name))
        yield* signal('end')
        return calls
      })
    const first = await begin([code(true)])
    const begun = await first.work.start('code', undefined, { key: 'k' })
    await until(async () => (await begun.state()).awaits.includes('go'))
    await first.die()
    const second = await begin([code(false)])
    const run = second.work.get('code', 'k')
    await run.signal('go')
    await until(async () => (await run.state()).awaits.includes('end'))
    await second.die()
    // It has all that was recorded behind it still.
    const third = await begin([code(false, 'c')])
    await until(async () => (await third.work.get('code', 'k').state()).status === 'diverged')
    await third.die()
    const { work } = await begin([code(false)])
    await work.get('code', 'k').signal('end')
    assert.deepEqual(await work.get('code', 'k').result(), ['check', 'b'])
  })

  named(
    'a change in place is taken by runs that come to it, and not by those that were further',
    async (begin) => {
      const calls: string[] = []
      const stop = gate()
      const code = (isNew: boolean) =>
        durable('code', function* (isFurther: boolean) {
          yield* step('a', () => void calls.push('a'))
          if (!isFurther && !isNew) yield* step('stop', () => stop.opened)
          if (isNew && (yield* patched('check'))) yield* step('check', () => void calls.push('check'))
          yield* step('b', () => void calls.push('b'))
          if (!isNew) yield* step('stop', () => stop.opened)
          return calls.length
        })
      const first = await begin([code(false)])
      await first.work.start('code', true, { key: 'further' })
      await until(async () => (await first.work.get('code', 'further').state()).steps.length === 2)
      await first.work.start('code', false, { key: 'before' })
      await until(async () => (await first.work.get('code', 'before').state()).steps.length === 1)
      await first.die()
      assert.deepEqual(calls, ['a', 'b', 'a'])
      const second = await begin([code(true)])
      await second.work.get('code', 'further').result()
      assert.ok(
        !(await second.work.get('code', 'further').state()).steps.some(({ name }) => name === 'check'),
      )
      await second.work.get('code', 'before').result()
      const { steps } = await second.work.get('code', 'before').state()
      assert.deepEqual(
        steps.map(({ name }) => name),
        ['a', 'patched(check)', 'check', 'b'],
      )
    },
  )
}
