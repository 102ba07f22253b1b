/**
 * Runs that start others, that have no end, that show themselves, of arrows, and of branches: on an engine.
 *
 * They are a part of runs.test.support.ts.
 */
import assert from 'node:assert/strict'
import { lift, liftAsync } from '../arrow/index.ts'
import { until } from '../base/wait.test.support.ts'
import { all, forEach, race } from '../fiber/index.ts'
import { branch, checkpoint, child, durable, expose, id, signal, step } from './index.ts'
import { HOUR_MS, type Named, gate } from './machine.test.support.ts'
import { exposedName, headsName, journalName } from './records.ts'

export function moreTests(named: Named): void {
  for (const declare of [childTests, copyTests, childEndTests, checkpointTests]) declare(named)
  for (const declare of [cancelledTests, anewTests, exposeTests, arrowTests, branchTests]) declare(named)
  timedTests(named)
  limitTests(named)
  releaseTests(named)
}

function releaseTests(named: Named): void {
  const calls: string[] = []
  const one = (release: string) =>
    durable('released', function* () {
      yield* step('first', () => calls.push(release))
      yield* signal('go')
      yield* step('second', () => calls.push(release))
      yield* signal('go')
      yield* step('third', () => calls.push(release))
    })

  named('a run goes on with the release that has begun it while that is offered', async (begin) => {
    calls.length = 0
    const old = await begin([one('1')], { idleMs: 10, release: '1' })
    const run = await old.work.start('released', undefined, { key: 'a' })
    await until(async () => (await run.state()).status === 'waiting')
    const { work } = await begin([one('2')], { idleMs: 10, release: '2' })
    const same = work.get('released', 'a')
    await same.signal('go')
    await until(async () => {
      const { steps, status } = await same.state()
      return steps.length === 4 && status === 'waiting'
    })
    assert.deepEqual([calls, (await work.list('released')).items[0].release], [['1', '1'], '1'])
    await old.work.close()
    await same.signal('go')
    await same.result()
    assert.deepEqual([calls, (await same.state()).release], [['1', '1', '2'], '2'])
  })

  named('a release whose process has died is not waited for; others take runs of any', async (begin) => {
    calls.length = 0
    const old = await begin([one('1')], { idleMs: 10, release: '1' })
    const run = await old.work.start('released', undefined, { key: 'a' })
    await until(async () => (await run.state()).status === 'waiting')
    const any = await begin([one('any')], { idleMs: 10, runsMax: 1 })
    await old.die()
    await any.work.get('released', 'a').signal('go')
    await until(() => calls.length === 2)
    await any.work.close()
    const { work } = await begin([one('2')], { release: '2' })
    await work.get('released', 'a').signal('go')
    await work.get('released', 'a').result()
    assert.deepEqual(calls, ['1', 'any', '2'])
  })

  named('a run that begins anew by checkpoint() may do so with another release', async (begin) => {
    const stop = gate()
    const of = (release: string) =>
      durable('looping', function* (name: string) {
        if (name === 'full') return yield* step('full', () => stop.opened)
        if (release === '2') return release
        yield* step('turn', () => {})
        return yield* checkpoint(name)
      })
    const old = await begin([of('1')], { runsMax: 1, release: '1' })
    const run = await old.work.start('looping', 'a')
    await until(async () => (await run.state()).release === '1')
    await old.work.start('looping', 'full', { priority: 'high' })
    await begin([of('2')], { release: '2' })
    assert.equal(await run.result(), '2')
    stop.open()
  })
}

function childTests(named: Named): void {
  named('a child is started once, and its result is that of its parent over a crash', async (begin) => {
    const calls: string[] = []
    const stop = gate()
    const part = durable('part', function* (n: number) {
      yield* step('part', () => calls.push(`part ${n}`))
      if (n === 2) yield* signal('go')
      return n * 10
    })
    const whole = durable('whole', function* () {
      const parts = yield* all([child(part, 1), child(part, 2, { key: 'two' })])
      yield* step('stop', () => (calls.push('stop') === 3 ? stop.opened : undefined))
      return parts
    })
    const definitions = [part, whole] as const
    const first = await begin(definitions, { idleMs: 20 })
    await first.work.start('whole', undefined, { key: 'k' })
    // Its parent, too, waits outside of memory.
    await until(async () => (await first.work.get('whole', 'k').state()).status === 'waiting')
    await first.work.get('part', 'two').signal('go')
    await until(() => calls.includes('stop'))
    await first.die()
    const { work } = await begin(definitions)
    assert.deepEqual(await work.get('whole', 'k').result(), [10, 20])
    assert.deepEqual(calls.toSorted(), ['part 1', 'part 2', 'stop', 'stop'])
    assert.equal((await work.list('part')).items.length, 2)
  })

  named('a child fails its parent, and both are run again', async (begin) => {
    let isBroken = true
    const part = durable('part', function* () {
      return yield* step('part', () => {
        if (isBroken) throw new RangeError('broken')
        return 'mended'
      })
    })
    const whole = durable('whole', function* () {
      return yield* child(part, undefined, { key: 'p' })
    })
    const { work } = await begin([part, whole])
    const run = await work.start('whole', undefined)
    await assert.rejects(run.result(), RangeError)
    isBroken = false
    await work.get('part', 'p').again()
    assert.equal(await work.get('part', 'p').result(), 'mended')
    await run.again()
    assert.equal(await run.result(), 'mended')
    await run.forget()
    // As one that begins for the first time: the key is that of another's child.
    const other = await work.start('whole', undefined)
    await assert.rejects(other.result(), { code: 'RUN_TAKEN' })
    const copy = await other.fork({ from: 'child(part)' })
    await assert.rejects(copy.result(), { code: 'RUN_TAKEN' })
  })
}

function copyTests(named: Named): void {
  named('a copy has children of its own, and the results of those that had ended', async (begin) => {
    const calls: number[] = []
    const part = durable('part', function* (n: number) {
      if (n === 2) yield* signal('go')
      yield* step('part', () => void calls.push(n))
      return n * 10
    })
    const whole = durable('whole', function* () {
      return [yield* child(part, 1), yield* child(part, 2)]
    })
    const { work } = await begin([part, whole])
    const run = await work.start('whole', undefined)
    await until(async () => (await run.state()).steps.at(-1)?.key === 'end(part)#2')
    const copies = [await run.fork({ from: 'child(part)#1' }), await run.fork({ from: 'end(part)#2' })]
    await until(async () => (await work.list('part')).items.length === 5)
    for (const { key, status } of (await work.list('part')).items)
      if (status !== 'done') await work.get('part', key).signal('go')
    for (const one of [run, ...copies]) assert.deepEqual(await one.result(), [10, 20])
    assert.deepEqual(calls.toSorted(), [1, 1, 2, 2, 2])
  })
}

function childEndTests(named: Named): void {
  named('a child is cancelled with its parent, and with the branch that waits for it', async (begin) => {
    const calls: string[] = []
    const part = durable('part', function* (name: string) {
      try {
        yield* signal('never')
      } finally {
        yield* step('undo', () => calls.push(`undo ${name}`))
      }
    })
    const whole = durable('whole', function* () {
      yield* race([child(part, 'loser', { key: 'loser' }), signal('go on')])
      yield* child(part, 'last', { key: 'last' })
    })
    const { work } = await begin([part, whole])
    const run = await work.start('whole', undefined)
    const waits = (key: string) => async () => {
      const state = await work
        .get('part', key)
        .state()
        .catch(() => undefined) // not started yet
      return state?.awaits.includes('never') === true
    }
    await until(waits('loser'))
    await run.signal('go on')
    await assert.rejects(work.get('part', 'loser').result(), { code: 'RUN_CANCELLED' })
    await until(waits('last'))
    await run.cancel()
    await assert.rejects(run.result(), { code: 'RUN_CANCELLED' })
    await assert.rejects(work.get('part', 'last').result(), { code: 'RUN_CANCELLED' })
    assert.deepEqual(calls, ['undo loser', 'undo last'])
  })

  named('a child that is ended at once ends its parent', async (begin) => {
    const part = durable('part', function* () {
      yield* signal('never')
    })
    const whole = durable('whole', function* () {
      return yield* child(part, undefined, { key: 'p' })
    })
    const strange = durable('strange', function* () {
      return yield* child(5 as never, undefined)
    })
    const { work } = await begin([part, whole, strange], { idleMs: 20 })
    const run = await work.start('whole', undefined)
    await until(async () => (await run.state()).status === 'waiting')
    await work.get('part', 'p').cancel({ now: true })
    await assert.rejects(run.result(), { code: 'RUN_CANCELLED', message: /"p" of "part"/ })
    await assert.rejects((await work.start('strange', undefined)).result(), { code: 'RUN_ARGUMENT' })
  })
}

function checkpointTests(named: Named): void {
  named('a run begins anew with its state, and its journal is that of the last part', async (begin) => {
    const keys = new Set<string>()
    const ids = new Set<string>()
    const endless = durable('endless', function* (count: number) {
      ids.add(yield* id())
      for (let n = 0; n < 5; n++) yield* step('count', ({ key }) => void keys.add(key))
      if (count < 4) yield* checkpoint(count + 1)
      return `${count} parts, ${yield* signal<string>('word')}`
    })
    const { work } = await begin([endless])
    const run = await work.start('endless', 1)
    await run.signal('word', 'sent before')
    assert.equal(await run.result(), '4 parts, sent before')
    assert.deepEqual([keys.size, ids.size], [20, 4])
    assert.equal((await run.state()).steps.length, 6)
  })

  named('a signal is received once, also before a checkpoint, and one is refused its size', async (begin) => {
    const found: unknown[] = []
    const letters = durable('letters', function* (count: number) {
      const letter = yield* signal<string>('letter', { timeoutMs: count === 3 ? 1 : HOUR_MS })
      found.push(letter)
      if (count === 0) yield* checkpoint(Buffer.alloc(2_000_000))
      if (count < 3) yield* checkpoint(count + 1)
    })
    const { work } = await begin([letters])
    const run = await work.start('letters', 1)
    await run.signal('letter', 'one')
    await run.signal('letter', 'two')
    await run.result()
    assert.deepEqual(found, ['one', 'two', undefined])
    const large = await work.start('letters', 0)
    await large.signal('letter', 'l')
    await assert.rejects(large.result(), { code: 'RUN_TOO_LARGE' })
  })
}

function cancelledTests(named: Named): void {
  named('a run that is cancelled does not begin anew in its finalizers', async (begin) => {
    const looping = durable('looping', function* (count: number) {
      try {
        yield* signal('never')
      } finally {
        yield* checkpoint(count + 1)
      }
    })
    const { work } = await begin([looping])
    const run = await work.start('looping', 1)
    await until(async () => (await run.state()).awaits.length === 1)
    await run.cancel()
    await assert.rejects(run.result(), { code: 'RUN_CANCELLED' })
  })
}

function anewTests(named: Named): void {
  named('a run waits for its own child, and not for one from before a checkpoint', async (begin) => {
    const part = durable('part', function* (n: number) {
      yield* signal('go')
      return n
    })
    const whole = durable('whole', function* (n: number) {
      function* anew() {
        yield* signal('anew')
        yield* checkpoint(n + 1)
      }
      yield* all([child(part, n), anew()])
    })
    const { work } = await begin([part, whole])
    const run = await work.start('whole', 1)
    const waits = (parts: number) => async () =>
      (await run.state()).awaits.includes('anew') && (await work.list('part')).items.length === parts
    await until(waits(1))
    const [first] = (await work.list('part')).items
    await run.signal('anew')
    await until(waits(2))
    await work.get('part', first.key).signal('go')
    await until(async () => (await run.state()).steps.some(({ key }) => key.endsWith('end(part)#2')))
    await run.cancel()
    await assert.rejects(run.result(), { code: 'RUN_CANCELLED' })
    const [second] = (await work.list('part')).items.filter(({ key }) => key !== first.key)
    await assert.rejects(work.get('part', second.key).result(), { code: 'RUN_CANCELLED' })
    assert.equal(await work.get('part', first.key).result(), 1)
  })
}

function exposeTests(named: Named): void {
  named(
    'what a run shows is read as it goes on, again by who comes later, and over a crash',
    async (begin) => {
      const counting = durable('counting', function* (count: number) {
        const seen: string[] = []
        yield* expose(() => seen)
        for (let n = 0; n < count; n++) seen.push(yield* signal<string>('next'))
        yield* expose(() => ({ seen: seen.join(' ') }))
      })
      const first = await begin([counting])
      const run = await first.work.start('counting', 3, { key: 'k' })
      const values = run.progress<string[]>()
      assert.deepEqual((await values.next()).value, [])
      await run.signal('next', 'a')
      assert.deepEqual((await values.next()).value, ['a'])
      await first.die()
      const { work } = await begin([counting], { idleMs: 20 })
      const again = work.get('counting', 'k')
      await until(async () => (await again.state()).status === 'waiting')
      const controller = new AbortController()
      const later = again.progress<string[]>({ signal: controller.signal })
      assert.deepEqual((await later.next()).value, ['a'])
      const ended = later.next()
      controller.abort()
      await assert.rejects(ended, { name: 'AbortError' })
      const left = again.progress()
      await left.next()
      const waited = left.next()
      assert.equal((await left.return(undefined)).done, true)
      assert.equal((await waited).done, true)
      await again.signal('next', 'b')
      await again.signal('next', 'c')
      await again.result()
      const all = []
      for await (const value of again.progress()) all.push(value)
      assert.deepEqual(all, [{ seen: 'a b c' }])
      await again.forget()
      await assert.rejects(again.progress().next(), { code: 'RUN_UNKNOWN' })
    },
  )

  named('what cannot be shown is what readers receive, and the run goes on', async (begin) => {
    const broken = durable('broken', function* (bytes: number) {
      yield* expose(() => {
        if (bytes > 0) return Buffer.alloc(bytes)
        throw new RangeError('not to be seen')
      })
      return yield* step('step', () => 'done')
    })
    const { work } = await begin([broken])
    for (const [bytes, problem] of [
      [0, RangeError],
      [2_000_000, { code: 'RUN_TOO_LARGE' }],
    ] as const) {
      const run = await work.start('broken', bytes)
      assert.equal(await run.result(), 'done')
      await assert.rejects(run.progress().next(), problem)
    }
  })
}

function arrowTests(named: Named): void {
  named('the named stages of an arrow are steps', async (begin) => {
    const calls: string[] = []
    const stop = gate()
    const noted = (name: string) => (n: number) => (calls.push(name), n + 1)
    const arrow = lift(noted('first'))
      .named('first')
      .andThen(lift(noted('between')))
      .andThen(
        liftAsync(async (n: number) => {
          if (calls.push('second') === 3) await stop.opened
          return n * 10
        })
          .named('second')
          .andThen(lift((n: number) => `${n}`).named('third'))
          .named('both'),
      )
    const staged = durable('staged', arrow)
    const first = await begin([staged])
    const begun = await first.work.start('staged', 1, { key: 'k' })
    await until(() => calls.length === 3)
    const { running } = await begun.state()
    assert.deepEqual([running.map(({ key }) => key), first.work.names], [['second#1'], ['staged']])
    const first1 = /^staged k: running, .* so far\n {2}first#1 {3}recorded in .*\n/.source
    const here = new RegExp(`${first1} {2}second#1 {2}running for .*\n {2}third#1 {3}remaining\n$`)
    assert.match(await begun.explain(), here)
    const other = await begin([staged], { runsMax: 0 })
    const there = other.work.get('staged', 'k')
    await until(async () => (await there.state()).running.length > 0)
    assert.match(await there.explain(), here)
    assert.equal((await there.state()).holder, (await begun.state()).holder)
    await first.die()
    const { work } = await begin([staged])
    const run = work.get('staged', 'k')
    assert.equal(await run.result(), '30')
    assert.deepEqual(calls, ['first', 'between', 'second', 'between', 'second'])
    assert.deepEqual(
      (await run.state()).steps.map(({ name }) => name),
      ['first', 'second', 'third'],
    )
    assert.match(await run.explain(), /^staged k: done, [^\n]*\d m?s\n( {2}\w+#1 +recorded in [^\n]*\n){3}$/)
  })
}

function branchTests(named: Named): void {
  named('branches are found again by their names, whatever there is beside them now', async (begin) => {
    const calls: string[] = []
    const stop = gate()
    const mailing = (names: readonly string[]) => {
      function* send(name: string) {
        yield* step('write', () => calls.push(`write ${name}`))
        const again = yield* branch(
          'twice',
          step('write', () => `${name} twice`),
        )
        yield* step('send', () => (calls.length < 4 ? stop.opened : undefined))
        return again
      }
      return durable('mailing', function* () {
        return yield* forEach(names, (name) => branch(name, send(name)), { concurrency: 4 })
      })
    }
    const first = await begin([mailing(['Ann', 'Bob', 'Ann'])])
    const run = await first.work.start('mailing', undefined, { key: 'k' })
    await until(async () => (await run.state()).steps.length === 6)
    assert.deepEqual(
      (await run.state()).steps.map(({ key }) => key).toSorted(),
      ['Ann:1/', 'Ann:2/', 'Bob:1/'].flatMap((path) => [`${path}twice:1/write#1`, `${path}write#1`]),
    )
    await first.die()
    stop.open()
    const { work } = await begin([mailing(['Eve', 'Bob', 'Ann', 'Ann'])])
    const result = await work.get('mailing', 'k').result()
    assert.deepEqual(result, ['Eve twice', 'Bob twice', 'Ann twice', 'Ann twice'])
    assert.deepEqual(calls, ['write Ann', 'write Bob', 'write Ann', 'write Eve'])
  })
}

/** Longer than a machine whose cores are all busy needs for what is read in that time. */
const ttlMs = 5000

function timedTests(named: Named): void {
  named(
    'what is kept of a run that has ended is deleted after its time, and its key is free',
    async (begin) => {
      const timed = durable('timed', function* (ends: string) {
        yield* expose(() => ends)
        yield* step('first', () => ends)
        if (ends === 'never') yield* signal('never')
        if (ends === 'failed') throw new RangeError('failed')
        return yield* step('second', () => ends)
      })
      const whole = durable('whole', function* () {
        return yield* child(timed, 'child', { ttlMs })
      })
      const { work, valuesIn } = await begin([timed, whole])
      const kept = await work.start('timed', 'kept', { key: 'kept' })
      const run = await work.start('timed', 'first', { key: 'key', ttlMs })
      const failed = await work.start('timed', 'failed', { ttlMs })
      const never = await work.start('timed', 'never', { ttlMs })
      assert.equal(await (await work.start('whole', undefined)).result(), 'child')
      assert.deepEqual([await run.result(), await kept.result()], ['first', 'kept'])
      await assert.rejects(failed.result(), RangeError)
      await until(async () => (await never.state()).awaits.includes('never'))
      assert.equal((await work.list('timed')).items.length, 5)
      assert.equal(await never.cancel({ now: true }), true)
      const left = async (): Promise<number[]> =>
        Promise.all([headsName, journalName, exposedName].map((of) => valuesIn(of('timed'))))
      await until(async () => (await left()).every((count, index) => count === [1, 2, 1][index]))
      await assert.rejects(run.state(), { code: 'RUN_UNKNOWN' })
      assert.equal(await (await work.start('timed', 'second', { key: 'key' })).result(), 'second')
      assert.equal(await kept.result(), 'kept')
    },
  )

  named('a run that is run again in its time is kept until it has ended again', async (begin) => {
    let calls = 0
    const flaky = durable('flaky', function* () {
      yield* step('before', () => 1)
      return yield* step('call', () => {
        if (++calls === 1) throw new RangeError('once')
        return calls
      })
    })
    const { work, valuesIn } = await begin([flaky])
    const run = await work.start('flaky', undefined, { ttlMs })
    await assert.rejects(run.result(), RangeError)
    await run.again()
    assert.equal(await run.result(), 2)
    assert.equal((await run.state()).steps.length, 2)
    for (const nameOf of [headsName, journalName])
      await until(async () => (await valuesIn(nameOf('flaky'))) === 0)
  })
}

function limitTests(named: Named): void {
  named('a run is once in its queue, whatever its priority, and waits for its limit', async (begin) => {
    const held = durable('held', function* (name: string) {
      yield* signal('end')
      return name
    })
    const { work, queues } = await begin([held])
    const countOf = async (): Promise<number> => {
      const { waiting, taken } = (await queues()).find(({ zone }) => zone === 'held')!
      return waiting + taken
    }
    const limit = { concurrency: 1, per: 'Ann' }
    const first = await work.start('held', 'first', { key: 'first', limit, priority: 'low' })
    await until(async () => (await first.state()).awaits.length > 0)
    const second = await work.start('held', 'second', { key: 'second', limit, priority: 'low' })
    await until(async () => (await second.state()).status === 'waiting')
    const third = await work.start('held', 'third', { key: 'third', limit: { concurrency: 1 } })
    await third.signal('end')
    assert.equal(await third.result(), 'third')
    await work.start('held', 'another', { key: 'second', priority: 'high' })
    await until(async () => (await countOf()) === 2)
    for (const run of [second, first]) await run.signal('end')
    assert.deepEqual([await first.result(), await second.result()], ['first', 'second'])
    await until(async () => (await countOf()) === 0)
    assert.equal(await second.forget(), true)
    const again = await work.start('held', 'again', { key: 'second', priority: 'high' })
    await again.signal('end')
    assert.equal(await again.result(), 'again')
    await until(async () => (await countOf()) === 0)
  })
}
