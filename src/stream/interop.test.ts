/**
 * Streams of Node and of the web, as sources and as destinations: their ends, errors, cancels and aborts, in
 * both directions; and that neither timers nor handles are left.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { PassThrough, Readable, Writable } from 'node:stream'
import type { UnderlyingSink } from 'node:stream/web'
import { afterEach, test } from 'node:test'
import { fork, sleep } from '../fiber/index.ts'
import { settled, until } from '../base/wait.test.support.ts'
import { Stream, StreamError } from './index.ts'

afterEach(() => {
  const left = process.getActiveResourcesInfo().filter((name) => name === 'Timeout' || name === 'Immediate')
  // What the test runner itself waits with.
  assert.ok(left.length <= 1, `left: ${left.join(', ')}`)
})

/** A turn of the event loop, in which what waits has begun to. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

test('a stream of Node is read to its end, and its error is a failure', async () => {
  assert.deepEqual(await Stream.from(Readable.from(['a', 'b'])).runCollect(), ['a', 'b'])
  const source = new Readable({ objectMode: true, read() {} })
  source.push(1)
  const run = fork(Stream.from<number>(source).runCollect())
  await turn()
  source.destroy(new Error('torn'))
  const exit = await settled(run.await(), 'the failure')
  assert.ok(exit.kind === 'failure' && (exit.error as Error).message === 'torn')
})

test('a stream of Node is destroyed when its items are not needed, also while it waits', async () => {
  for (const isWaiting of [false, true]) {
    const source = new Readable({ objectMode: true, read() {} })
    source.push(1)
    const stream = Stream.from<number>(source)
    if (isWaiting) {
      const fiber = fork(stream.runDrain())
      await turn()
      await settled(fiber.interrupt(), 'the end of the interrupt')
    } else assert.equal(await stream.runHead(), 1)
    assert.ok(source.destroyed)
  }
})

test('a stream of the web is read to its end, or cancelled, and its error is a failure', async () => {
  assert.deepEqual(await Stream.from(ReadableStream.from([1, 2])).runCollect(), [1, 2])
  const reasons: unknown[] = []
  const endless = (): ReadableStream<number> =>
    new ReadableStream({
      pull: (controller) => controller.enqueue(1),
      cancel: (why) => void reasons.push(why),
    })
  assert.equal(await Stream.from(endless).take(3).runCount(), 3)
  assert.deepEqual(reasons, [undefined])
  const failing = new ReadableStream({ start: (controller) => controller.error(new Error('torn')) })
  const exit = await fork(Stream.from(failing).runDrain()).await()
  assert.ok(exit.kind === 'failure' && (exit.error as Error).message === 'torn')
  const blocked = new ReadableStream({ cancel: () => Promise.reject(new Error('cancel failed')) })
  const fiber = fork(Stream.from(blocked).runDrain())
  await turn()
  assert.equal((await fiber.interrupt()).kind, 'interruption')
})

test('what opens late for an interrupted run is closed', async () => {
  let cancelled = false
  let answer: (source: ReadableStream) => void = () => {}
  const late = new Promise<ReadableStream>((resolve) => (answer = resolve))
  const fiber = fork(Stream.from(() => late).runDrain())
  const interrupted = fiber.interrupt()
  answer(new ReadableStream({ cancel: () => void (cancelled = true) }))
  assert.equal((await interrupted).kind, 'interruption')
  await until(() => cancelled)
})

test('a source that opens with a signal is aborted by an interrupt', async () => {
  const fiber = fork(
    Stream.from(
      (signal) =>
        new Promise<number[]>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    ).runDrain(),
  )
  assert.equal((await settled(fiber.interrupt('not needed'), 'the abort')).kind, 'interruption')
})

test('as a ReadableStream it is read on demand, and a cancel interrupts it while it waits', async () => {
  let [read, closed] = [0, 0]
  const stream = Stream.repeat(() => ++read).ensuring(() => void closed++)
  const web = ReadableStream.from(stream)
  const reader = web.getReader()
  assert.deepEqual(await reader.read(), { value: 1, done: false })
  await turn()
  assert.equal(read, 1)
  await reader.cancel('enough')
  assert.equal(closed, 1)
  const waiting = ReadableStream.from(Stream.never.ensuring(() => void closed++)).getReader()
  const item = waiting.read()
  await turn()
  await settled(waiting.cancel('enough'), 'the cancel')
  assert.equal((await item).done, true)
  assert.equal(closed, 2)
  const failing = ReadableStream.from(Stream.fail(new Error('no more'))).getReader()
  await assert.rejects(failing.read(), /no more/)
})

test('as a Readable of Node it ends, fails, and is interrupted by destroy() while it waits', async () => {
  assert.deepEqual(await Readable.from(Stream.of(1, 2)).toArray(), [1, 2])
  await assert.rejects(Readable.from(Stream.fail(new Error('no more'))).toArray(), /no more/)
  let closed = 0
  for (const why of [undefined, new Error('torn')]) {
    const readable = Readable.from(
      Stream.of(1)
        .concat(Stream.never)
        .ensuring(() => void closed++),
    )
    const errors: unknown[] = []
    readable.on('error', (error) => errors.push(error))
    await once(readable, 'data')
    readable.destroy(why)
    await settled(
      once(readable, 'close').catch(() => {}),
      'the close',
    ).catch(() => {})
    await until(() => readable.closed)
    assert.deepEqual(errors, why === undefined ? [] : [why])
  }
  assert.equal(closed, 2)
})

test('runInto holds back, ends a Writable, and waits until all is written', async () => {
  const written: number[] = []
  let [read, most] = [0, 0]
  const slow = new Writable({
    objectMode: true,
    highWaterMark: 2,
    write(item: number, _, done) {
      most = Math.max(most, read - written.length)
      setImmediate(() => (written.push(item), done()))
    },
  })
  await Stream.of(1, 2, 3, 4, 5, 6)
    .tap(() => void read++)
    .runInto(slow)
  assert.deepEqual(written, [1, 2, 3, 4, 5, 6])
  assert.ok(slow.writableFinished)
  assert.ok(most <= 3, `${most} items ahead`)
})

test('runInto destroys a Writable when it fails or is interrupted', async () => {
  const aborted: unknown[] = []
  const target = (): Writable =>
    new Writable({
      objectMode: true,
      write: (_, __, done) => done(),
      destroy: (why, done) => (aborted.push(why?.message), done(why)),
    })
  const exit = await fork(
    Stream.of(1)
      .concat(Stream.fail(new Error('no more')))
      .runInto(target()),
  ).await()
  assert.ok(exit.kind === 'failure' && (exit.error as Error).message === 'no more')
  const fiber = fork(Stream.never.runInto(target()))
  await turn()
  assert.equal((await fiber.interrupt('not needed')).kind, 'interruption')
  assert.equal(aborted.length, 2)
  assert.equal(aborted[0], 'no more')
  await turn()
})

test('the error or the close of a destination interrupts the stream', async () => {
  let closed = 0
  const endless = Stream.never.ensuring(() => void closed++)
  const failing = new PassThrough()
  const run = fork(endless.runInto(failing)).await()
  await turn()
  failing.destroy(new Error('disk full'))
  const exit = await settled(run, 'the failure')
  assert.ok(exit.kind === 'failure' && (exit.error as Error).message === 'disk full')
  const left = new PassThrough({ objectMode: true })
  const other = fork(endless.runInto(left)).await()
  await turn()
  left.destroy()
  const end = await settled(other, 'the failure')
  assert.ok(end.kind === 'failure' && (end.error as StreamError).code === 'STREAM_CLOSED')
  const before = await fork(Stream.of(1).runInto(left)).await()
  assert.equal(before.kind, 'failure')
  let fail: (why: unknown) => void = () => {}
  const web = new WritableStream({ start: (controller) => (fail = (why) => controller.error(why)) })
  const third = fork(endless.runInto(web)).await()
  await turn()
  fail(new Error('torn'))
  const torn = await settled(third, 'the failure')
  assert.ok(torn.kind === 'failure' && (torn.error as Error).message === 'torn')
  assert.equal(closed, 3)
})

test('runInto writes into a WritableStream, which holds it back, and closes or aborts it', async () => {
  const seen: unknown[] = []
  const sink: UnderlyingSink<number> = {
    write: async (item) => {
      await turn()
      seen.push(item)
    },
    close: () => void seen.push('closed'),
    abort: (why) => void seen.push(why),
  }
  let ahead = 0
  await Stream.of(1, 2, 3)
    .tap((n) => {
      ahead = Math.max(ahead, n - seen.length)
    })
    .runInto(new WritableStream(sink))
  assert.deepEqual(seen, [1, 2, 3, 'closed'])
  assert.ok(ahead <= 2, `${ahead} items ahead`)
  seen.length = 0
  const target = new WritableStream(sink)
  const exit = await fork(Stream.fail('no more').runInto(target)).await()
  assert.deepEqual([exit.kind, seen], ['failure', ['no more']])
  assert.equal(target.locked, false)
})

test('keepOpen leaves the destination as it is', async () => {
  const target = new PassThrough({ objectMode: true })
  await Stream.of(1).runInto(target, { keepOpen: true })
  const exit = await fork(Stream.fail('no more').runInto(target, { keepOpen: true })).await()
  assert.equal(exit.kind, 'failure')
  const full = new Writable({ highWaterMark: 1, write() {} })
  const stuck = fork(Stream.of('a', 'b').runInto(full, { keepOpen: true }))
  await turn()
  await stuck.interrupt()
  for (const left of [target, full])
    for (const event of ['error', 'close', 'drain']) assert.equal(left.listenerCount(event), 0, event)
  target.end(2)
  assert.deepEqual(await target.toArray(), [1, 2])
  const web = new WritableStream()
  await Stream.of(1).runInto(web, { keepOpen: true })
  await web.close()
})

test('a timer of a stage goes with its run', async () => {
  const fiber = fork(
    Stream.of(1)
      .tap(() => sleep(60_000))
      .timeout(120_000)
      .debounce(60_000)
      .throttle({ perMs: 60_000 })
      .runDrain(),
  )
  await turn()
  await fiber.interrupt()
})
