/**
 * A run as text: each state of a step with its times, and journals that do not have when steps began.
 *
 * What runs is added by the process that has it: runs.test.support.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorFrame } from '../fleet/internal.ts'
import { explained } from './explain.ts'
import { type Head, type JournalEntry, type RunStatus, readRecord, writeRecord } from './records.ts'
import { stateOf } from './state.ts'

const busy = errorFrame(new Error('bank is busy'))
const head = (status: RunStatus, endedMs = 0): Head => {
  const error = status === 'failed' ? errorFrame(new Error('no bank')) : undefined
  return { id: 'i', status, input: undefined, startedMs: 0, endedMs, dueMs: 0, awaits: [], frame: error }
}

function check(of: Head, entries: readonly JournalEntry[], stages: readonly string[], lines: string): void {
  const kept = readRecord(writeRecord('w', entries)).entries
  const text = explained('pay', stateOf('a', of, kept, undefined, 10_000), stages, 10_000)
  assert.equal(text, lines.replace(/^\n/, '').replace(/^ {4}/gm, '').trimEnd() + '\n')
}

test('each state of a step has its time', () =>
  check(
    head('waiting'),
    [
      { kind: 'done', key: 'quick#1', atMs: 3, begunMs: 1 },
      { kind: 'failed', key: 'charge#1', atMs: 1500, begunMs: 500, frame: busy, dueMs: 1600 },
      { kind: 'done', key: 'charge#1', atMs: 2000, begunMs: 1600 },
      { kind: 'begun', key: 'pause()#1', atMs: 4000, dueMs: 3_600_000 },
      { kind: 'failed', key: '0/mail#1', atMs: 9000, begunMs: 8000, frame: busy, dueMs: 20_000 },
      { kind: 'begun', key: 'signal(paid)#1', atMs: 9500 },
      { kind: 'left', key: '1/slow#1', atMs: 9000, begunMs: 8500 },
      { kind: 'left', key: '2/slow#1', atMs: 9000 },
      { kind: 'done', key: 'other clock#1', atMs: 9000, begunMs: 9500 },
    ],
    [],
    `
    pay a: waiting, 10.00 s so far
      quick#1         recorded in 2 ms
      charge#1        recorded in 1.50 s, 1 failed: bank is busy
      pause()#1       waiting for 6.00 s, due 1970-01-01T01:00:00.000Z
      0/mail#1        retrying for 2.00 s, due 1970-01-01T00:00:20.000Z, 1 failed: bank is busy
      signal(paid)#1  waiting for 500 ms
      1/slow#1        left in 500 ms
      2/slow#1        left
      other clock#1   recorded in 0 ms`,
  ))

test('stages behind a failure are not reached, and a record without its beginning has no time', () =>
  check(
    head('failed', 7_500_000),
    [
      { kind: 'done', key: 'pay#1', atMs: 5 },
      { kind: 'held', key: '', atMs: 6 },
      { kind: 'error', key: 'pay#2', atMs: 150_000, begunMs: 10_000, frame: busy },
    ],
    ['pay', 'pay', 'mail'],
    `
    pay a: failed, 2 h 5 min
      pay#1   recorded
      pay#2   failed in 2 min 20 s, 1 failed: bank is busy
      mail#1  not reached
      no bank`,
  ))

test('what another process runs and has not reported is what remains', () =>
  check(
    head('running'),
    [{ kind: 'done', key: 'pay#1', atMs: 4000, begunMs: 3000 }],
    ['pay', 'mail'],
    `
    pay a: running, 10.00 s so far
      pay#1   recorded in 1.00 s
      mail#1  remaining, or running elsewhere, for 6.00 s at most`,
  ))
