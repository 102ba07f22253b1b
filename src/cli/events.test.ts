/**
 * Lines about events: few of a kind in a second, and how many more there were.
 * That the commands print them is tested with the commands.
 */
import assert from 'node:assert/strict'
import { channel } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { EventLines, printDeadJobs, printRefusals, printWorkers } from './events.ts'

/** Lines, and the ends of their spans. */
function printed(): { lines: EventLines; out: string[]; over: () => void } {
  const out: string[] = []
  const ends: (() => void)[] = []
  const lines = new EventLines(
    (line) => void out.push(line),
    (_, act) => void ends.push(act),
  )
  return { lines, out, over: () => ends.splice(0).forEach((end) => end()) }
}

test('five lines of a kind in a second, and then how many more', () => {
  const { lines, out, over } = printed()
  for (let count = 0; count < 1240; count++) lines.line('refusals', `refused ${count}`)
  lines.line('reloads', 'reloaded')
  assert.deepEqual(out, [
    ...['0', '1', '2', '3', '4'].map((count) => `corespun: refused ${count}\n`),
    'corespun: reloaded\n',
  ])
  over()
  assert.deepEqual(out.splice(0).slice(6), ['corespun: 1,235 more refusals in the last second\n'])
  lines.line('refusals', 'the next')
  over()
  assert.deepEqual(out, ['corespun: the next\n'])
})

test('a line about several counts as many', () => {
  const { lines, out, over } = printed()
  lines.line('refusals', 'one', 65)
  over()
  assert.deepEqual(out, ['corespun: one\n', 'corespun: 64 more refusals in the last second\n'])
})

test('each event is one line, whatever its texts are, and none after the end', () => {
  const { lines, out } = printed()
  const ends = [printWorkers(lines, 'own'), printDeadJobs(lines), printRefusals(lines)]
  const publish = (): void => {
    channel('corespun:worker:ended').publish({ worker: 'other/0', reason: 'it exited' })
    channel('corespun:worker:ended').publish({ worker: 'own/1', reason: 'it exited with code 3' })
    channel('corespun:zone:reloaded').publish({ zone: 'other', workers: 2, ms: 1 })
    channel('corespun:zone:reloaded').publish({ zone: 'own', workers: 2, ms: 12.3, error: undefined })
    const error = new Error('no\nsetup')
    channel('corespun:zone:reloaded').publish({ zone: 'own', workers: 1, ms: 5, error })
    const job = { zone: 'mail', key: 'a\nb', name: 'send', failures: 3, hostsLost: 0 }
    channel('corespun:job:dead').publish({ ...job, error: new Error('two\nlines') })
    channel('corespun:job:dead').publish({ ...job, name: '', hostsLost: 2, error: 'thrown' })
    const request = { what: 'request', reason: 'malformed', status: 400, protocol: 'HTTP/1.1', localPort: 80 }
    channel('corespun:http:refused').publish({ ...request, remoteAddress: '::1', detail: 'x\ny', leftOut: 0 })
    channel('corespun:http:refused').publish({
      ...request,
      status: 0,
      remoteAddress: '',
      detail: '',
      leftOut: 0,
    })
  }
  publish()
  assert.deepEqual(out, [
    'corespun: a worker has ended and is replaced: it exited with code 3\n',
    'corespun: reload: 2 workers were replaced in 12 ms\n',
    'corespun: reload: 1 worker was replaced in 5 ms; the others continue with the old code: no setup\n',
    'corespun: job "a\\nb" (send) is dead, attempts failed: 3; two lines\n',
    'corespun: job "a\\nb" is dead, attempts failed: 3, hosts lost: 2; "thrown"\n',
    'corespun: refused: request, malformed, 400, from ::1: x y\n',
    'corespun: refused: request, malformed\n',
  ])
  ends.forEach((end) => end())
  publish()
  assert.equal(out.length, 7)
})
