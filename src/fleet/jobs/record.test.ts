/**
 * What is read of jobs, records and letters: what was written, and nothing else.
 *
 * Whoever may write into the stores of a zone can write anything there.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encode } from '../../transport/index.ts'
import { framed } from '../wire.ts'
import { boundedFrame, frameOf, thrownBy } from './frames.ts'
import { argsOf, infoOf } from './info.ts'
import {
  FRESH,
  type Job,
  type JobRecord,
  readJob,
  readLetter,
  readRecord,
  writeJob,
  writeLetter,
  writeRecord,
} from './record.ts'

const limits = {
  attemptsMax: 3,
  hostsLostMax: 3,
  backoffMs: 1000,
  backoffMsMax: 60_000,
  timeoutMs: 0,
  delayMs: 0,
  ttlMs: 1000,
}
const repeat = { everyMs: 0, cron: '0 3 * * *', timeZone: 'UTC' }
const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', baggage: 'a=1' }
const [rank, origin, args] = [1, 'a-B_1', framed(encode([1]))] as const
const limit = { per: 'tenant', concurrency: 2, jobs: 0, perMs: 0 }
const absent = {
  repeat: undefined,
  trace: undefined,
  limit: undefined,
  woken: undefined,
  after: undefined,
  replaces: false,
}
const job: Job = { name: 'f', args, rank, limits, ...absent, origin, submission: 3 }
const errors = [framed(frameOf(new RangeError('bad')))]
const record: JobRecord = { ...FRESH, failures: 1, progress: framed(encode(0.5)), errors }
const ended: JobRecord = { ...FRESH, status: 'done', value: framed(encode('x')) }

test('jobs, records and letters are read as they were written', () => {
  for (const each of [
    job,
    { ...job, trace },
    { ...job, repeat },
    { ...job, limit, woken: { firstMs: 7, turn: 1 } },
    { ...job, after: ['a', 'b'], replaces: true },
    { ...job, limit: { per: '', concurrency: 0, jobs: 1000, perMs: 100 } },
    { ...job, repeat: { ...repeat, everyMs: 1000, cron: '' } },
  ])
    assert.deepEqual(readJob(writeJob(each)), each)
  for (const each of [record, ended, FRESH]) assert.deepEqual(readRecord(writeRecord(each)), each)
  const letter = { job: framed(writeJob(job)), record }
  assert.deepEqual(readLetter(writeLetter(letter)), letter)
  assert.deepEqual(argsOf(job), [1])
  for (const other of [5, {}, { traceparent: 'x', baggage: 7 }])
    assert.deepEqual(readJob(writeJob({ ...job, trace: other as never })), job)
})

const NOT_JOBS: readonly unknown[] = [
  { args: 'text' },
  { name: 5 },
  { rank: '1.>' },
  { rank: 3 },
  { limits: undefined },
  { limits: 5 },
  { limits: { ...limits, ttlMs: NaN } },
  { limits: { ...limits, ttlMs: -1 } },
  { limits: { ...limits, attemptsMax: Infinity } },
  { limits: { ...limits, hostsLostMax: '3' } },
  { limits: { ...limits, backoffMs: -1 } },
  { limits: { ...limits, backoffMsMax: undefined } },
  { limits: { ...limits, delayMs: 1e20 } },
  { limits: { ...limits, timeoutMs: {} } },
  { repeat: null },
  { repeat: 'daily' },
  { repeat: { ...repeat, cron: 5 } },
  { repeat: { ...repeat, everyMs: 0.001 } },
  { repeat: { ...repeat, timeZone: undefined } },
  { origin: undefined },
  { origin: '' },
  { origin: 'a.b' },
  { origin: '*' },
  { submission: undefined },
  { submission: -1 },
  { limit: 5 },
  { limit: { ...limit, per: 5 } },
  { limit: { ...limit, concurrency: 0 } },
  { limit: { ...limit, concurrency: 1001 } },
  { limit: { ...limit, jobs: 5 } },
  { limit: { ...limit, jobs: 1001, perMs: 1000 } },
  { after: 'a' },
  { after: [5] },
  { woken: 5 },
  { woken: { firstMs: NaN, turn: 0 } },
  { woken: { firstMs: 7, turn: -1 } },
]
const NOT_RECORDS: readonly unknown[] = [
  { status: 'odd' },
  { status: 'done' },
  { value: encode(1) },
  { failures: -1 },
  { hostsLost: 'one' },
  { dueMs: NaN },
  { missingMs: undefined },
  { addedMs: undefined },
  { progress: 0.5 },
  { errors: 5 },
  { errors: ['text'] },
  { errors: Array.from({ length: 11 }, () => errors[0]) },
]

test('what was read is written again without what lay beside it', () => {
  /** In the middle of memory with other messages. */
  const among = (bytes: Uint8Array): Uint8Array => {
    const chunk = new Uint8Array(10_000).fill(0x41)
    chunk.set(bytes, 100)
    return chunk.subarray(100, 100 + bytes.length)
  }
  const [jobBytes, recordBytes] = [writeJob(job), writeRecord({ ...record, ...ended, errors })]
  assert.deepEqual(writeJob(readJob(among(jobBytes))!), jobBytes)
  assert.deepEqual(writeRecord(readRecord(among(recordBytes))!), recordBytes)
  const letterBytes = writeLetter({ job: framed(jobBytes), record })
  assert.equal(writeLetter(readLetter(among(letterBytes))!).length, letterBytes.length)
})

test('what is not whole is not read', () => {
  for (const change of NOT_JOBS)
    assert.equal(readJob(writeJob({ ...job, ...(change as object) })), undefined, JSON.stringify(change))
  for (const change of NOT_RECORDS) {
    const other = { ...record, ...(change as object) } as JobRecord
    assert.equal(readRecord(writeRecord(other)), undefined, JSON.stringify(change))
    assert.equal(readLetter(writeLetter({ job: writeJob(job), record: other })), undefined)
  }
  assert.equal(readLetter(writeLetter({ job: 'x' as never, record })), undefined)
  for (const bytes of [new Uint8Array(), new Uint8Array([1, 2]), encode(null), encode({}), encode(['job'])])
    for (const read of [readJob, readRecord, readLetter]) assert.equal(read(bytes), undefined)
  for (const read of [readRecord, readLetter]) assert.equal(read(undefined), undefined)
  assert.deepEqual(argsOf(undefined), [])
  assert.deepEqual(argsOf({ ...job, args: new Uint8Array([9]) }), [])
})

test('what cannot be read of a record is described', () => {
  const info = infoOf('k', { ...record, progress: new Uint8Array([9]) })
  assert.ok(info.progress instanceof Error)
  assert.equal(thrownBy(undefined), undefined)
})

test('an error is kept within its bound, whatever it has', () => {
  const large = Object.assign(new Error('€'.repeat(50_000)), {
    name: '€'.repeat(5000),
    code: '€'.repeat(5000),
    stack: '€'.repeat(5000),
    more: new Uint8Array(50_000),
  })
  const frame = frameOf(large)
  assert.ok(frame.length <= 4096, String(frame.length))
  const { name, message, code } = thrownBy(frame) as Error & { code: string }
  assert.deepEqual([name, message, code], ['€'.repeat(100), '€'.repeat(500), '€'.repeat(100)])
  assert.ok(boundedFrame(new Uint8Array(5000)).length <= 4096)
})
