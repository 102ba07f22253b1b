/**
 * Durable runs on the engine in memory, and what is refused.
 *
 * The tests themselves are in runs.test.support.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ifThenElse, lift } from '../arrow/index.ts'
import { until } from '../base/wait.test.support.ts'
import { type Operation, Schedule, all, catchAll, fork, race } from '../fiber/index.ts'
import { type Fleet, connect } from '../fleet/index.ts'
import { type Engine, runsQueueName } from '../fleet/internal.ts'
import { encode } from '../transport/index.ts'
import {
  type Durable,
  type Duration,
  RunError,
  branch,
  checkpoint,
  child,
  durable,
  expose,
  id,
  now,
  patched,
  pause,
  random,
  runs,
  signal,
  step,
} from './index.ts'
import { lendAgain } from './heads.ts'
import { boxesName, headsName, journalName, readHead, writeHead, writeRecord } from './records.ts'
import { Runs } from './runs.ts'
import { runTests } from './runs.test.support.ts'

runTests('memory', (name) => connect(`memory:${name}`))

const WRONG = [
  'name',
  'fn',
  'args',
  'zone',
  'pause',
  'time',
  'patch',
  'branch',
  'expose',
  'child',
  'signal',
] as const
type Wrong = (typeof WRONG)[number]

test('wrong arguments are refused by name', async () => {
  const one: Durable<'one', Wrong, void> = durable('one', function* (wrong: Wrong) {
    if (wrong === 'name') yield* step('a/b', () => 1)
    if (wrong === 'fn') yield* step('a', 5 as never)
    if (wrong === 'args') yield* step('a', () => 1, 'x' as never)
    if (wrong === 'zone') yield* step('a', () => 1, [], { zone: {} as never })
    if (wrong === 'pause') yield* pause(-1)
    if (wrong === 'time') yield* pause('3 weeks' as never)
    if (wrong === 'patch') yield* patched('')
    if (wrong === 'branch') yield* branch('a', 5 as never)
    if (wrong === 'expose') yield* expose(5 as never)
    if (wrong === 'child') yield* child(one as never, undefined, { key: 'x'.repeat(201) })
    yield* signal('')
  })
  for (const name of ['', 'a b', 'x'.repeat(41), 5 as never])
    assert.throws(() => durable(name, one.body), { code: 'RUN_ARGUMENT' })
  assert.throws(() => durable('one', 5 as never), { code: 'RUN_ARGUMENT' })
  await using fleet = await connect('memory:wrong runs')
  for (const options of [
    {},
    { definitions: [one, one] },
    { definitions: [5] },
    { definitions: [one], leaseMs: 1 },
  ])
    await assert.rejects(runs(fleet, options as never), { code: 'RUN_ARGUMENT' })
  await using work = await runs(fleet, { definitions: [one] })
  for (const wrong of WRONG)
    await assert.rejects((await work.start('one', wrong)).result(), { code: 'RUN_ARGUMENT' })
  await assert.rejects(work.start('two' as never, 'fn' as never), /must be one of one; received "two"/)
  await assert.rejects(work.start('one', 'fn', { key: '' }), { code: 'RUN_ARGUMENT' })
  for (const wrong of [
    { priority: 'soon' },
    { limit: {} },
    { limit: { concurrency: 1, per: 'x'.repeat(201) } },
  ])
    await assert.rejects(work.start('one', 'fn', wrong as never), { code: 'RUN_ARGUMENT' })
  await assert.rejects(work.list('one', { itemsMax: 0 }), { code: 'RUN_ARGUMENT' })
})

test('outside of a run nothing can be asked for', async () => {
  const nothing = durable('nothing', function* () {})
  const operations = [
    step('a', () => 1),
    branch('a', now()),
    pause(1),
    signal('a'),
    now(),
    random(),
    id(),
    patched('a'),
  ]
  for (const operation of [...operations, checkpoint(1), expose(() => 1), child(nothing, undefined)])
    await assert.rejects(fork(operation).join(), { code: 'RUN_REQUIRED' })
})

/** An engine that calls `see` before each operation on the journals of a definition; it may throw. */
function seen(of: Engine, definition: string, see: (operation: 'get' | 'put' | 'delete') => void): Engine {
  return {
    ...{ scheme: of.scheme, messages: of.messages, clock: of.clock, ended: of.ended },
    messageBytesMax: of.messageBytesMax,
    queue: (name) => of.queue(name),
    objects: (name, options) => of.objects(name, options),
    queues: () => of.queues(),
    valuesIn: (name) => of.valuesIn(name),
    close: () => of.close(),
    keyValue: async (name, options) => {
      const values = await of.keyValue(name, options)
      if (name !== journalName(definition)) return values
      return {
        get: async (key) => (see('get'), values.get(key)),
        put: async (key, bytes, how) => (see('put'), values.put(key, bytes, how)),
        delete: async (key, revision) => (see('delete'), values.delete(key, revision)),
        page: (paging) => values.page(paging),
        last: () => values.last(),
        watch: (on, how) => values.watch(on, how),
      }
    },
  }
}

test('each step costs one write, also the thousandth', async () => {
  await using fleet = await connect('memory:many steps')
  const operations: string[] = []
  const engine = seen(fleet.engine, 'many', (operation) => void operations.push(operation))
  const many = durable('many', function* (count: number) {
    for (let n = 0; n < count; n++) yield* step('step', (value: number) => value, [n])
    return count
  })
  const work = await Runs.open(engine, [many] as const, { runsMax: 1, leaseMs: 60_000, idleMs: 60_000 })
  assert.equal(await (await work.start('many', 1000)).result(), 1000)
  await work.close()
  assert.equal(operations.filter((operation) => operation === 'put').length, 1000)
  assert.deepEqual(new Set(operations.slice(-1000)), new Set(['put']))
})

test('a run is forgotten as a whole, also by a second call when the first one has died', async () => {
  await using fleet = await connect('memory:forgotten')
  let deletions = 0
  const engine = seen(fleet.engine, 'kept', (operation) => {
    if (operation === 'delete' && ++deletions === 3) throw new Error('died')
  })
  const kept = durable('kept', function* () {
    for (let n = 0; n < 5; n++) yield* step('step', () => n)
  })
  const work = await Runs.open(engine, [kept] as const, { runsMax: 1, leaseMs: 60_000, idleMs: 60_000 })
  const run = await work.start('kept', undefined)
  await run.result()
  // Of one that was ended before it had begun anew, and was sent a signal meanwhile.
  const [heads, journals, boxes] = await Promise.all(
    [headsName, journalName, boxesName].map((of) => fleet.engine.keyValue(of('kept'), { ttlMs: 0 })),
  )
  const head = readHead((await heads.get(run.key))?.bytes as Uint8Array)
  await heads.put(run.key, writeHead({ ...head, before: 'before' }))
  await journals.put('before.0', writeRecord('another', []))
  await boxes.put(run.key, Buffer.from('signals'))
  await assert.rejects(run.forget(), /died/)
  assert.equal(await fleet.engine.valuesIn(journalName('kept')), 4)
  // What is left of it is not run again, nor copied, since that would repeat what is recorded no more.
  await assert.rejects(run.fork({ from: 'step' }), {
    code: 'RUN_NOT_AGAIN',
    message: /its input is not kept/,
  })
  assert.deepEqual([(await work.list('kept')).items.length, (await run.state()).status], [1, 'done'])
  assert.equal(await run.forget(), true)
  for (const named of [headsName, journalName, boxesName])
    assert.equal(await fleet.engine.valuesIn(named('kept')), 0, named('kept'))
  await work.close()
})

test('a run whose new beginning was not written begins anew later', async () => {
  await using fleet = await connect('memory:anew')
  let isBroken = true
  const engine: Engine = {
    ...seen(fleet.engine, 'anew', () => {}),
    keyValue: async (name, options) => {
      const values = await fleet.engine.keyValue(name, options)
      if (name !== headsName('anew')) return values
      const put: typeof values.put = async (key, bytes, how) => {
        if (!isBroken || readHead(bytes).before === undefined) return values.put(key, bytes, how)
        isBroken = false
        throw new Error('refused')
      }
      return { ...values, put }
    },
  }
  const anew = durable('anew', function* (n: number) {
    if (n === 0) yield* checkpoint(1)
    return n
  })
  const work = await Runs.open(engine, [anew] as const, { runsMax: 1, leaseMs: 60_000, idleMs: 60_000 })
  assert.equal(await (await work.start('anew', 0)).result(), 1)
  assert.equal(isBroken, false)
  await work.close()
})

test('of two copies with one key the second leaves nothing', async () => {
  const copied = durable('copied', function* () {
    for (const name of ['a', 'b']) yield* step(name, () => name)
  })
  await using fleet = await connect('memory:copied')
  await using work = await runs(fleet, { definitions: [copied] })
  const run = await work.start('copied', undefined)
  await run.result()
  const copies = await Promise.all([1, 2].map(() => run.fork({ from: 'b', key: 'copy' })))
  await Promise.all(copies.map((copy) => copy.result()))
  await run.forget()
  await copies[0].forget()
  assert.equal(await fleet.engine.valuesIn(journalName('copied')), 0)
})

type Mode = 'whole' | 'refuses' | 'dies' | 'dead'
/** An engine that adds no item when it `refuses`, and writes nothing behind that when it `dies`. */
function breaking(of: Engine, mode: { is: Mode }): Engine {
  return {
    ...seen(of, '', () => {}),
    queue: async (name) => {
      const queue = await of.queue(name)
      const add: typeof queue.add = async (...item) => {
        if (mode.is === 'refuses') throw new Error('refused')
        if (mode.is !== 'whole') mode.is = 'dead'
        return mode.is === 'dead' ? Promise.reject(new Error('died')) : queue.add(...item)
      }
      return { ...queue, add }
    },
    keyValue: async (name, options) => {
      const values = await of.keyValue(name, options)
      const put: typeof values.put = async (...value) =>
        mode.is === 'dead' ? Promise.reject(new Error('died')) : values.put(...value)
      return { ...values, put }
    },
  }
}

const HALF_SETTINGS = { runsMax: 1, leaseMs: 60_000, idleMs: 60_000 }

test('what was written of a copy, or to run again, is that of a run when its process dies', async () => {
  await using fleet = await connect('memory:half')
  const mode: { is: Mode } = { is: 'whole' }
  let nowMs = 0
  const engine = breaking(fleet.engine, mode)
  const half = durable('half', function* () {
    yield* step('a', () => 1)
    yield* step('b', () => Promise.reject(new Error('failed')))
  })
  const work = await Runs.open(engine, [half] as const, HALF_SETTINGS, { nowMs: () => nowMs })
  const run = await work.start('half', undefined)
  await assert.rejects(run.result(), /failed/)
  const recordCount = await fleet.engine.valuesIn(journalName('half'))
  for (const call of [() => run.again(), () => run.fork({ from: 'b', key: 'copy' })]) {
    mode.is = 'dies'
    await assert.rejects(call(), /died/)
    mode.is = 'whole'
  }
  assert.equal(await fleet.engine.valuesIn(journalName('half')), recordCount + 2)
  const copy = work.get('half', 'copy')
  const statuses = async (): Promise<unknown[]> => {
    const { items } = await work.list('half')
    const listed = items.find(({ key }) => key === 'copy')
    return [
      (await copy.state()).status,
      listed?.status,
      await copy.result({ timeoutMs: 0 }).catch((error: RunError) => error.code),
    ]
  }
  // It may be written still, and begin.
  assert.deepEqual(await statuses(), ['running', 'running', 'RUN_TIMEOUT'])
  assert.equal(await copy.forget(), false)
  nowMs += 10_000
  assert.deepEqual(await statuses(), ['cancelled', 'cancelled', 'RUN_CANCELLED'])
  assert.deepEqual([await copy.forget(), await run.forget()], [true, true])
  assert.equal(await fleet.engine.valuesIn(journalName('half')), 0)
  await work.close()
})

test('what cannot be run again or copied is as before, and the next call does that at once', async () => {
  await using fleet = await connect('memory:withdrawn')
  const mode: { is: Mode } = { is: 'whole' }
  let fails = true
  const half = durable('half', function* () {
    yield* step('a', () => 1)
    yield* step('b', () => fails && Promise.reject(new Error('failed')))
  })
  const engine = breaking(fleet.engine, mode)
  const work = await Runs.open(engine, [half] as const, HALF_SETTINGS)
  const run = await work.start('half', undefined)
  await assert.rejects(run.result(), /failed/)
  const kept = async (): Promise<number[]> =>
    Promise.all([headsName, journalName].map((of) => fleet.engine.valuesIn(of('half'))))
  const before = await kept()
  mode.is = 'refuses'
  await assert.rejects(run.again(), /refused/)
  await assert.rejects(run.fork({ from: 'b', key: 'copy' }), /refused/)
  mode.is = 'whole'
  assert.deepEqual(await kept(), before)
  const heads = await fleet.engine.keyValue(headsName('half'), { ttlMs: 0 })
  assert.equal(readHead((await heads.get(run.key))?.bytes as Uint8Array).next, undefined)
  fails = false
  const copy = await run.fork({ from: 'b', key: 'copy' })
  await run.again()
  await Promise.all([run.result(), copy.result()])
  await work.close()
})

test('a copy that is cancelled while it is written never begins', async () => {
  await using fleet = await connect('memory:uncopied')
  let isForked = false
  const uncopied = durable('uncopied', function* () {
    yield* step('a', () => isForked)
  })
  const engine: Engine = {
    ...seen(fleet.engine, 'uncopied', () => {}),
    queue: async (name) => {
      const queue = await fleet.engine.queue(name)
      const add: typeof queue.add = async (...item) => {
        if (isForked) assert.equal(await looking.get('uncopied', 'copy').cancel(), true)
        return queue.add(...item)
      }
      return { ...queue, add }
    },
  }
  await using looking = await runs(fleet, { definitions: [uncopied], runsMax: 0 })
  const work = await Runs.open(engine, [uncopied] as const, HALF_SETTINGS)
  const run = await work.start('uncopied', undefined)
  await run.result()
  isForked = true
  const copy = await run.fork({ from: 'a', key: 'copy' })
  await assert.rejects(copy.result(), { code: 'RUN_CANCELLED' })
  await Promise.all([run.forget(), copy.forget()])
  assert.equal(await fleet.engine.valuesIn(journalName('uncopied')), 0)
  await work.close()
})

test('a child that was forgotten does not run again when its process dies, and its parent ends', async () => {
  let calls = 0
  const part = durable('part', function* () {
    yield* step('count', () => ++calls)
  })
  const whole = durable('whole', function* () {
    yield* child(part, undefined, { key: 'part' })
  })
  await using fleet = await connect('memory:orphan')
  const dying = await connect('memory:orphan')
  const engine: Engine = {
    ...seen(dying.engine, 'orphan', () => {}),
    keyValue: async (name, options) => {
      const values = await dying.engine.keyValue(name, options)
      // Its process ends the child, and does not come to report that.
      return name === boxesName('whole') ? { ...values, put: () => new Promise<never>(() => {}) } : values
    },
  }
  await Runs.open(engine, [part, whole], { ...HALF_SETTINGS, runsMax: 2, leaseMs: 200 })
  await using looking = await runs(fleet, { definitions: [part, whole], runsMax: 0 })
  const run = await looking.start('whole', undefined)
  await until(() => calls > 0)
  const started = looking.get('part', 'part')
  await started.result()
  assert.equal(await started.forget(), true)
  await dying.close()
  await using _ = await runs(fleet, { definitions: [part, whole], leaseMs: 200 })
  await assert.rejects(run.result(), { code: 'RUN_UNKNOWN' })
  assert.equal(calls, 1)
})

test('the end of a child arrives although what waits of signals is full, and its key is shown', async () => {
  const part = durable('part', function* () {
    yield* signal('go')
  })
  const whole = durable('whole', function* () {
    yield* child(part, undefined, { key: 'p' })
  })
  await using fleet = await connect('memory:full')
  await using work = await runs(fleet, { definitions: [part, whole] })
  const run = await work.start('whole', undefined)
  await until(async () => (await run.state()).steps[0]?.child === 'p')
  const isKept = (value: string): Promise<boolean> =>
    run.signal('other', value).then(
      () => true,
      (error: unknown) => (assert.equal((error as RunError).code, 'RUN_TOO_LARGE'), false),
    )
  for (let chars = 2 ** 18; chars >= 1; chars /= 4) while (await isKept('x'.repeat(chars)));
  await work.get('part', 'p').signal('go')
  await run.result()
})

test('a run whose item was lost goes on when it is started, or cancelled, once more', async () => {
  const lost = durable('lost', function* (n: number) {
    yield* step('a', () => n)
    return n
  })
  await using fleet = await connect('memory:lost')
  await using starting = await runs(fleet, { definitions: [lost], runsMax: 0 })
  const queue = await fleet.engine.queue(runsQueueName('lost'))
  for (const key of ['started', 'cancelled']) {
    await starting.start('lost', 1, { key })
    await queue.remove(key)
  }
  const run = await starting.start('lost', 2, { key: 'started' })
  assert.equal(await starting.get('lost', 'cancelled').cancel(), true)
  await using _ = await runs(fleet, { definitions: [lost] })
  assert.equal(await run.result(), 1)
  await assert.rejects(starting.get('lost', 'cancelled').result(), { code: 'RUN_CANCELLED' })
})

test('an item of a run that was forgotten begins nothing, and another one with its key', async () => {
  let begun = 0
  const once = durable('once', function* (n: number) {
    begun++
    yield* pause(0)
    return n
  })
  await using fleet = await connect('memory:once')
  await using starting = await runs(fleet, { definitions: [once], runsMax: 0 })
  const queue = await fleet.engine.queue(runsQueueName('once'))
  await lendAgain({ engine: fleet.engine, queue }, 'forgotten')
  await lendAgain({ engine: fleet.engine, queue }, 'another')
  const another = await starting.start('once', 1, { key: 'another' })
  // One that was ended before its item was removed.
  const ended = await starting.start('once', 2)
  assert.equal(await ended.cancel({ now: true }), true)
  await queue.add(ended.key, Buffer.from('left'), 1)
  assert.equal(await ended.forget(), true)
  await using _ = await runs(fleet, { definitions: [once] })
  assert.equal(await another.result(), 1)
  await until(async () => (await queue.count()) === 0)
  assert.equal(begun, 1)
})

test('another run with the key of one that was forgotten while it was woken has an item', async () => {
  const late = durable('late', function* (n: number) {
    yield* pause(0)
    return n
  })
  await using fleet = await connect('memory:late')
  await using starting = await runs(fleet, { definitions: [late], runsMax: 0 })
  const queue = await fleet.engine.queue(runsQueueName('late'))
  await lendAgain({ engine: fleet.engine, queue }, 'key')
  let reads = 0
  let started: Promise<unknown> | undefined
  const engine: Engine = {
    ...seen(fleet.engine, 'late', () => {}),
    keyValue: async (name, options) => {
      const values = await fleet.engine.keyValue(name, options)
      const get: typeof values.get = async (key) => {
        const found = await values.get(key)
        // It is begun when it was looked at for the last time, and before its item is removed.
        if (++reads === 2) await (started = starting.start('late', 3, { key }))
        return found
      }
      return name === headsName('late') ? { ...values, get } : values
    },
  }
  const work = await Runs.open(engine, [late], { runsMax: 1, leaseMs: 600, idleMs: 60_000 })
  await until(() => started !== undefined)
  assert.equal(await starting.get('late', 'key').result(), 3)
  await work.close()
})

test('a run whose item was replaced and ended before it had a head is taken', async () => {
  const slow = durable('slow', function* (n: number) {
    yield* pause(0)
    return n
  })
  await using fleet = await connect('memory:slow')
  const queue = await fleet.engine.queue(runsQueueName('slow'))
  const engine: Engine = {
    ...seen(fleet.engine, 'slow', () => {}),
    keyValue: async (name, options) => {
      const values = await fleet.engine.keyValue(name, options)
      // Who has found a run that was forgotten since wakes it, while the starter is cut off.
      const put: typeof values.put = async (key, bytes, how) => {
        await lendAgain({ engine: fleet.engine, queue }, key)
        await using _ = await runs(fleet, { definitions: [slow] })
        await until(async () => (await queue.count()) === 0)
        return values.put(key, bytes, how)
      }
      return name === headsName('slow') ? { ...values, put } : values
    },
  }
  const starting = await Runs.open(engine, [slow] as const, { runsMax: 0, leaseMs: 600, idleMs: 60_000 })
  const run = await starting.start('slow', 4, { key: 'key' })
  await using _ = await runs(fleet, { definitions: [slow] })
  assert.equal(await run.result(), 4)
  await starting.close()
})

test('a run begins with the head of its item, whatever was written before it has one', async () => {
  const begun: number[] = []
  const first = durable('first', function* (n: number) {
    begun.push(n)
    return n
  })
  await using fleet = await connect('memory:first')
  const { engine: plain } = fleet
  await using others = await runs(fleet, { definitions: [first], runsMax: 0 })
  const heads = await plain.keyValue(headsName('first'), { ttlMs: 0 })
  const forgotten = await others.start('first', 0, { key: 'forgotten' })
  const { bytes: left = assert.fail() } = (await heads.get('forgotten')) ?? {}
  assert.deepEqual([await forgotten.cancel({ now: true }), await forgotten.forget()], [true, true])
  // As a process writes it that was cut off when it had its item, and as it deletes it then.
  const writeLeft = (key: string): Promise<number> => heads.put(key, left, { revision: 0 })
  const before: Record<string, () => Promise<unknown>> = {
    written: () => writeLeft('written'),
    deleted: async () => heads.delete('deleted', await writeLeft('deleted')),
    started: () => others.start('first', 0, { key: 'started' }),
  }
  const engine: Engine = {
    ...seen(plain, 'first', () => {}),
    keyValue: async (name, options) => {
      const values = await plain.keyValue(name, options)
      const put: typeof values.put = async (key, bytes, how) => {
        await before[key]?.()
        delete before[key]
        return values.put(key, bytes, how)
      }
      return name === headsName('first') ? { ...values, put } : values
    },
  }
  const work = await Runs.open(engine, [first] as const, { runsMax: 0, leaseMs: 600, idleMs: 60_000 })
  const keys = ['written', 'deleted', 'started', 'later']
  const started = await Promise.all(keys.map((key, n) => work.start('first', n + 1, { key })))
  for (const run of started) assert.equal((await run.state()).status, 'running')
  await heads.delete('later')
  await writeLeft('later')
  await using _ = await runs(fleet, { definitions: [first] })
  assert.deepEqual(await Promise.all(started.map((run) => run.result())), [1, 2, 3, 4])
  assert.deepEqual(begun.sort(), [1, 2, 3, 4])
  await work.close()
})

test('what a process has reported of a run is not that of the next one with its key', async () => {
  let end = (): void => {}
  const reported = durable('reported', function* () {
    yield* step('slow', () => new Promise<void>((resolve) => (end = resolve)))
  })
  await using fleet = await connect('memory:reported')
  await using looking = await runs(fleet, { definitions: [reported], runsMax: 0 })
  const work = await runs(fleet, { definitions: [reported], leaseMs: 600 })
  const run = await looking.start('reported', undefined, { key: 'key' })
  await until(async () => (await run.state()).running.length > 0)
  end()
  await run.result()
  assert.equal(await run.forget(), true)
  await work.close()
  const next = await looking.start('reported', undefined, { key: 'key' })
  const { holder, running } = await next.state()
  assert.deepEqual([holder, running], [undefined, []])
})

test('what another version of the package has written is not read', async () => {
  const newer = durable('newer', function* () {
    yield* pause(0)
  })
  await using fleet = await connect('memory:newer')
  await using starting = await runs(fleet, { definitions: [newer], runsMax: 0 })
  const run = await starting.start('newer', undefined)
  const heads = await fleet.engine.keyValue(headsName('newer'), { ttlMs: 0 })
  const head = Buffer.from((await heads.get(run.key))?.bytes as Uint8Array).toString()
  const refused = { code: 'RUN_UNREADABLE', message: /its format is 2, and this version of corespun has 1/ }
  for (const newer of [Buffer.from(head.replace('{"run":1,', '{"run":2,')), encode(['run', 2, {}])]) {
    await heads.put(run.key, newer)
    await assert.rejects(run.state(), refused)
    await assert.rejects(run.cancel({ now: true }), refused)
    await assert.rejects(starting.list('newer'), refused)
  }
})

test('what fails beside the journal ends the run here, and does not leave it in memory', async () => {
  await using fleet = await connect('memory:beside')
  const boxes = await fleet.engine.keyValue(boxesName('beside'), { ttlMs: 0 })
  const beside = durable('beside', function* (key: string) {
    yield* step('damage', () => boxes.put(key, Buffer.from('damaged')))
    yield* checkpoint(key)
  })
  await using work = await runs(fleet, { definitions: [beside] })
  const run = await work.start('beside', 'key', { key: 'key' })
  await until(async () => (await run.state()).status === 'diverged')
  assert.equal(((await run.state()).error as RunError).code, 'RUN_UNREADABLE')
  await run.cancel({ now: true })
})

test('a run of which something is damaged waits, shows why, and can be cancelled', async () => {
  const damage = {
    signals: async ({ engine }: Fleet, key: string) => {
      const boxes = await engine.keyValue(boxesName('damaged'), { ttlMs: 0 })
      await boxes.put(key, Buffer.from('damaged'))
    },
    // The error of an attempt that another follows.
    'step#1': async ({ engine }: Fleet, key: string) => {
      const heads = await engine.keyValue(headsName('damaged'), { ttlMs: 0 })
      const journals = await engine.keyValue(journalName('damaged'), { ttlMs: 0 })
      const { id } = readHead((await heads.get(key))?.bytes as Uint8Array)
      const failed = {
        kind: 'failed',
        key: 'step#1',
        atMs: 1,
        dueMs: 1,
        frame: Buffer.from('damaged'),
      } as const
      await journals.put(`${id}.0`, writeRecord('another', [failed]))
    },
  }
  const damaged = durable('damaged', function* () {
    return yield* step('step', () => 1, [], { retry: Schedule.recurs(1) })
  })
  await using fleet = await connect('memory:damaged')
  await using starting = await runs(fleet, { definitions: [damaged], runsMax: 0 })
  for (const key of ['signals', 'step#1'] as const) {
    await starting.start('damaged', undefined, { key })
    await damage[key](fleet, key)
  }
  await using work = await runs(fleet, { definitions: [damaged] })
  for (const record of ['signals', 'step#1']) {
    const run = work.get('damaged', record)
    await until(async () => (await run.state()).status === 'diverged')
    const { error } = await run.state()
    assert.ok(error instanceof RunError && error.code === 'RUN_UNREADABLE', String(error))
    assert.equal((error as RunError<'RUN_UNREADABLE'>).facts.record, record)
    assert.equal(await run.cancel({ now: true }), true)
  }
  const heads = await fleet.engine.keyValue(headsName('damaged'), { ttlMs: 0 })
  await heads.put('head', Buffer.from('damaged'))
  await assert.rejects(work.list('damaged'), { code: 'RUN_UNREADABLE', message: /record head / })
})

test('a function of a schedule that throws fails the step with that', async () => {
  const picky = durable('picky', function* () {
    const retry = Schedule.recurs(3).while(() => {
      throw new RangeError('mine')
    })
    yield* step('picky', () => Promise.reject(new Error('busy')), [], { retry })
  })
  await using fleet = await connect('memory:picky')
  await using work = await runs(fleet, { definitions: [picky] })
  await assert.rejects((await work.start('picky', undefined)).result({ timeoutMs: 20_000 }), /mine/)
})

test('a pause is as long as it is written', async () => {
  const paused = durable('paused', function* (time: number | Duration) {
    yield* pause(time)
  })
  await using fleet = await connect('memory:paused')
  await using work = await runs(fleet, { definitions: [paused] })
  for (const [time, ms] of [
    [200_000, 200_000],
    ['400000ms', 400_000],
    ['600 s', 600_000],
    ['2.5 min', 150_000],
    ['1.5h', 5_400_000],
    ['1 day', 86_400_000],
    ['3 days', 259_200_000],
  ] as const) {
    const run = await work.start('paused', time)
    await until(async () => (await run.state()).steps.length === 1)
    const [{ at, dueAt }] = (await run.state()).steps
    assert.equal(Number(dueAt) - Number(at), ms)
    await run.cancel({ now: true })
  }
})

test('an arrow whose stages cannot be steps is refused', () => {
  const add = lift((n: number) => n + 1)
  for (const [arrow, problem] of [
    [add, /named stages/],
    [add.named('a/b'), /without #/],
    [add.named('a').timeout(5), /received "a"$/],
    [
      add.andThen(
        ifThenElse(
          lift(() => true),
          add.named('b'),
          add,
        ),
      ),
      /received "b"$/,
    ],
  ] as const)
    assert.throws(() => durable('arrow', arrow), { code: 'RUN_ARGUMENT', message: problem })
  assert.equal(durable('arrow', add.named('a').timeout(5).named('whole')).name, 'arrow')
})

type How = 'step' | 'value' | 'less' | 'more' | 'throws' | 'random' | 'function'

test('in development, code that does not do the same again is found', async () => {
  let count = 0
  const good = durable('good', function* (n: number) {
    const at = yield* now()
    const parts = yield* all([step('a', () => n), step('b', () => [word, at])])
    yield* catchAll(
      step('fails', () => Promise.reject(new Error('no'))),
      () => undefined,
    )
    yield* race([step('fast', () => 1), signal('never')])
    yield* expose(() => parts)
    if (yield* patched('more')) yield* pause(1)
    return [parts, yield* id(), yield* random(), yield* child(other, n)]
  })
  const word = 'a value'
  const other = durable('other', function* (n: number) {
    return yield* step('double', () => 2 * n)
  })
  const bad = durable('bad', function* (how: How): Operation<unknown, unknown> {
    const isSecond = ++count % 2 === 0
    yield* step('a', () => 1)
    if (how === 'step') yield* step(`step ${count}`, () => 1)
    if (how === 'less' && !isSecond) yield* step('less', () => 1)
    if (how === 'more' && isSecond) yield* step('more', () => 1)
    if (how === 'throws' && isSecond) throw new Error('the second time')
    if (how === 'function' && isSecond) return () => 1
    return how === 'value' ? count : how === 'random' ? Math.random() : how
  })
  await using fleet = await connect('memory:checked')
  await using work = await runs(fleet, { definitions: [good, other, bad], check: true })
  const found = (await (await work.start('good', 5)).result()) as [[number], string, number, number]
  assert.deepEqual([found[0][0], found[3]], [5, 10])
  for (const [how, problem] of [
    ['step', /asks for step 2:/],
    ['less', /does not ask for less:/],
    ['more', /asks for more:/],
    ['value', /returns another value:/],
    ['random', /returns another value:/],
    ['function', /returns another value:/],
    ['throws', /ends with defect:/],
  ] as const) {
    count = 0
    const result = (await work.start('bad', how)).result()
    await assert.rejects(result, { code: 'RUN_DIFFERS', message: problem })
  }
})
