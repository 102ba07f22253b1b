/**
 * The progress line as text, for every kind of job and width of terminal.
 * The terminal is a stream in memory; what is drawn on it is erased at the end.
 */
import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { clock, Pace, Progress, progressLine, type ProgressState } from './progress.ts'

const state = (over: Partial<ProgressState>): ProgressState => ({
  doneCount: 0,
  failedCount: 0,
  total: undefined,
  fraction: undefined,
  ...over,
})

const lines: readonly (readonly [what: string, state: ProgressState, perSecond: number, line: string])[] = [
  [
    'a known total',
    state({ doneCount: 1500, total: 3000 }),
    500,
    '███████████████░░░░░░░░░░░░░░░  50%  1,500/3,000  500/s  3s left',
  ],
  ['nothing known yet', state({}), 0, '0'],
  ['an endless input', state({ doneCount: 12_345 }), 1234.5, '12,345  1,235/s'],
  ['a slow one', state({ doneCount: 3 }), 0.25, '3  0.3/s'],
  [
    'a file read to a quarter, with failures',
    state({ doneCount: 250, failedCount: 2, fraction: 0.25 }),
    10,
    '███████░░░░░░░░░░░░░░░░░░░░░░░  25%  250  10/s  2 failed  1:15 left',
  ],
  ['no items', state({ total: 0 }), 0, '██████████████████████████████ 100%  0/0'],
]
for (const [what, given, perSecond, line] of lines) {
  test(`the line for ${what}`, () => assert.equal(progressLine(given, perSecond, 79), line))
}

test('no line is wider than the terminal', () => {
  const wide = state({ doneCount: 123_456, failedCount: 77, total: 9_999_999 })
  for (let columns = 1; columns < 100; columns++) assert(progressLine(wide, 1234, columns).length <= columns)
})

test('times', () => {
  const times = [0, 0.1, 59, 59.5, 60, 187, 3600, 7389]
  assert.deepEqual(times.map(clock), ['0s', '1s', '59s', '1:00', '1:00', '3:07', '1:00:00', '2:03:09'])
})

test('the rate is that of the last seconds', () => {
  const pace = new Pace()
  assert.equal(pace.perSecond(), 0)
  for (let ms = 0; ms <= 10_000; ms += 100) pace.note(ms, ms < 5000 ? 0 : ms - 5000)
  assert.equal(pace.perSecond(), 1000)
})

test('a progress line leaves nothing behind', async () => {
  const stream = Object.assign(new PassThrough(), { columns: 80, rows: 24, isTTY: true })
  let drawn: () => void = () => {}
  const wasDrawn = new Promise<void>((resolve) => (drawn = resolve))
  let text = ''
  stream.on('data', (piece) => (text += String(piece)))
  const progress = new Progress(stream, () => {
    drawn()
    return state({ doneCount: 5, total: 10 })
  })
  // The line's timer keeps no process alive, so this one waits with its own.
  const waiting = setInterval(() => {}, 1000)
  await wasDrawn
  clearInterval(waiting)
  progress.stop()
  await new Promise((done) => setImmediate(done))
  assert.match(text, /50% {2}5\/10/)
  // oxlint-disable-next-line no-control-regex -- the escape sequences are what is checked
  assert.match(text, /\u001B\[2K[^█]*$/, 'the last write erases the line')
})
