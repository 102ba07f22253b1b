/**
 * The output against streams that are slow, that close and that break.
 * Each stream here takes a piece on request, so no test depends on time.
 */
import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import type { CliError } from '../errors.ts'
import { Output } from './output.ts'

/** A stream that takes a piece on request, and the output on it. */
function bench(highWaterMark = 100) {
  const taken: string[] = []
  const events: string[] = []
  let release: ((error?: Error) => void) | undefined
  const stream = new Writable({
    highWaterMark,
    decodeStrings: false,
    write(piece: string, _encoding, done) {
      taken.push(piece)
      release = done
    },
  })
  const output = new Output(stream, {
    onDrain: () => events.push('drain'),
    onClosed: () => events.push('closed'),
    onFailed: (error: CliError) => events.push(error.message),
    beforeWrite: () => events.push('write'),
  })
  const take = async (error?: Error): Promise<void> => {
    const done = release
    release = undefined
    done?.(error)
    await turns()
  }
  return { output, taken, events, take, stream }
}

const turns = (): Promise<void> => new Promise((done) => setImmediate(() => setImmediate(() => done())))

test('lines of one turn go out together', async () => {
  const { output, taken, take } = bench()
  output.write('a', 1)
  output.write('b', 1)
  assert.deepEqual(taken, [])
  await turns()
  assert.deepEqual(taken, ['a\nb\n'])
  await take()
})

test('many lines go out before the turn ends', () => {
  const { output, taken } = bench()
  for (let count = 0; count < 700; count++) output.write('x'.repeat(100), 1)
  assert.equal(taken.length, 1)
})

test('a full stream blocks until it has drained', async () => {
  const { output, events, take } = bench(10)
  output.write('x'.repeat(20), 1)
  assert.equal(output.blocked, false)
  await turns()
  assert.equal(output.blocked, true)
  await take()
  assert.equal(output.blocked, false)
  assert.deepEqual(events, ['write', 'drain'])
})

test('lines count as delivered when the stream has taken them', async () => {
  const { output, take } = bench()
  output.write('a', 1)
  output.write('b', 1)
  await turns()
  output.write('c', 1)
  await turns()
  assert.equal(output.deliveredCount, 0)
  await take()
  assert.equal(output.deliveredCount, 2)
  await take(new Error('broken'))
  assert.equal(output.deliveredCount, 2)
})

test('end writes what is left and waits until it is taken', async () => {
  const { output, taken, take } = bench()
  output.write('last', 1)
  let ended = false
  const whole = output.end().then(() => (ended = true))
  await turns()
  assert.deepEqual([taken, ended], [['last\n'], false])
  await take()
  await take()
  await whole
})

test('a reader that leaves is reported once, nothing blocks, and the rest is dropped', async () => {
  const { output, taken, events, take } = bench(1)
  output.write('a', 1)
  await turns()
  await take(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }))
  output.write('b', 1)
  await turns()
  await output.end()
  assert.equal(output.blocked, false)
  assert.deepEqual(taken, ['a\n'])
  assert.deepEqual(events, ['write', 'closed'])
})

test('any other error is reported in one line', async () => {
  const { output, events, take } = bench()
  output.write('a', 1)
  await turns()
  await take(Object.assign(new Error('ENOSPC: no space'), { code: 'ENOSPC' }))
  assert.deepEqual(events, ['write', 'standard output: cannot be written: no space left on the device'])
})
