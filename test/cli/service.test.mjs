/**
 * The API of examples/service, asked as a program asks it: what it takes, what it refuses, what it reports
 * live.
 *
 * One server for all tests, with two workers: which of them answers is left to chance, as it is for users.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { until as eventually, WAIT_MS_MAX } from '../../dist/base/wait.test.support.js'
import { start, until } from './corespun.mjs'

const cwd = fileURLToPath(new URL('../..', import.meta.url))
let server
let url

before(async () => {
  const words = ['serve', 'examples/service/app.ts', '--port', '0', '--workers', '2']
  server = start(words, { cwd })
  await until(server.child.stdout, () => server.out.includes('\n'))
  url = /http:\/\/[\d.:]+/.exec(server.out)[0]
})

after(async () => {
  server.child.kill('SIGINT')
  const { code, err } = await server.ended
  assert.deepEqual([code, err], [0, ''])
})

/** Status, and code of the error if it is one. */
async function refusal(body, headers = {}) {
  const answer = await fetch(`${url}/api/score`, { method: 'POST', body, headers })
  const { error } = await answer.json()
  return [answer.status, error?.code]
}

/** The same of what is scored: asked again while beside other work a score takes longer than it may. */
async function scored(body, headers) {
  const endMs = performance.now() + PATIENCE_MS
  for (;;) {
    const answer = await refusal(body, headers)
    if (answer[1] !== 'TASK_TIMEOUT') return answer
    assert.ok(performance.now() < endMs, 'each score takes longer than it may')
  }
}

const PATIENCE_MS = 60_000

/** What comes live, one event after the other, until the reader leaves. */
async function* reports() {
  const leaving = new AbortController()
  const { body } = await fetch(`${url}/api/events`, { signal: leaving.signal })
  try {
    let text = ''
    for await (const piece of body.pipeThrough(new TextDecoderStream())) {
      const events = (text + piece).split('\n\n')
      text = events.pop()
      for (const event of events) {
        const [, name] = /^event: (.*)$/m.exec(event) ?? []
        if (name !== undefined) yield { name, data: JSON.parse(/^data: (.*)$/m.exec(event)[1]) }
      }
    }
  } finally {
    leaving.abort()
  }
}

/** The first event of that name that is as expected. */
async function toldOnce(name, isExpected = () => true) {
  for await (const event of reports()) if (event.name === name && isExpected(event.data)) return event.data
  throw new Error(`the events ended without ${name}`)
}

const JSON_TYPE = { 'content-type': 'application/json' }

test('a reader receives the history at once, also an empty one', { timeout: 4 * WAIT_MS_MAX }, async () => {
  assert.deepEqual(await toldOnce('history'), [])
})

test(
  'a listener receives every score, also of those in one moment',
  { timeout: 4 * WAIT_MS_MAX },
  async () => {
    const all = toldOnce('history', ({ length }) => length === 10)
    const names = Array.from({ length: 10 }, (_, index) => `moment-${index}.js`)
    const answers = names.map((name) => scored(JSON.stringify({ name, text: 'let a' }), JSON_TYPE))
    for (const answer of await Promise.all(answers)) assert.deepEqual(answer, [200, undefined])
    const received = (await all).map(({ name }) => name)
    assert.deepEqual(received.sort(), names)
  },
)

for (const timeoutMs of [0, 1.5, -1, 5001, 1e300, '5', [5], true]) {
  test(`a time limit of ${JSON.stringify(timeoutMs)} is refused`, async () => {
    assert.deepEqual(await refusal(JSON.stringify({ text: 'let a', timeoutMs }), JSON_TYPE), [
      400,
      'BAD_INPUT',
    ])
  })
}

test('a time limit of a form is a whole number too', async () => {
  const form = new FormData()
  form.set('text', 'let a')
  form.set('timeoutMs', '1.5')
  assert.deepEqual(await refusal(form), [400, 'BAD_INPUT'])
})

test('no time limit is one as well', async () => {
  assert.deepEqual(await scored('{"text": "let a"}', JSON_TYPE), [200, undefined])
  assert.deepEqual(await scored('{"text": "let a", "timeoutMs": 5000}', JSON_TYPE), [200, undefined])
})

const MIB = 1024 * 1024

/** A form with a file of this many bytes. */
function formWith(bytes) {
  const form = new FormData()
  form.set('file', new File([Buffer.alloc(bytes, ' ')], 'long.js', { type: 'text/javascript' }))
  return form
}

test('a file or a text of 1 MiB is scored, one byte more is refused', async () => {
  assert.deepEqual(await scored(formWith(MIB)), [200, undefined])
  assert.deepEqual(await refusal(formWith(MIB + 1)), [413, 'FORM_TOO_LARGE'])
  assert.deepEqual(await scored(' '.repeat(MIB)), [200, undefined])
  assert.deepEqual(await refusal(' '.repeat(MIB + 1)), [413, 'BODY_TOO_LARGE'])
  assert.deepEqual(await refusal(' '.repeat(2 * MIB)), [413, 'BODY_TOO_LARGE'])
})

test('the bytes of a text count, not how a form or JSON sends them', async () => {
  const lines = (bytes) => '\n'.repeat(bytes)
  const form = (text) => {
    const data = new FormData()
    data.set('text', text)
    return data
  }
  // A form makes two characters of each end of a line, as the standard requires; so does JSON.
  assert.deepEqual(await scored(form(lines(MIB))), [200, undefined])
  assert.deepEqual(await refusal(form(lines(MIB + 1))), [413, 'FORM_TOO_LARGE'])
  assert.deepEqual(await scored(JSON.stringify({ text: lines(MIB) }), JSON_TYPE), [200, undefined])
  const text = 'ä'.repeat(540_000)
  for (const [body, headers] of [[text], [form(text)], [JSON.stringify({ text }), JSON_TYPE]])
    assert.deepEqual(await refusal(body, headers), [413, 'BODY_TOO_LARGE'])
})

test('an empty file is refused, whatever text comes with it, and so is a missing file', async () => {
  const chosen = formWith(0)
  chosen.set('text', 'let a')
  assert.deepEqual(await refusal(chosen), [400, 'BAD_INPUT'])
  const none = new FormData()
  none.set('text', 'let a')
  // As browsers send it.
  none.set('file', new File([], '', { type: 'application/octet-stream' }))
  assert.deepEqual(await scored(none), [200, undefined])
})

test('media types are read in upper and lower case', async () => {
  const json = { 'content-type': 'Application/JSON; Charset=UTF-8' }
  assert.deepEqual(await refusal('{"text": 5}', json), [400, 'BAD_INPUT'])
  assert.deepEqual(await scored('{"text": "let a"}', json), [200, undefined])
  const pairs = { 'content-type': 'Application/X-WWW-Form-URLencoded' }
  assert.deepEqual(await refusal('timeoutMs=1.5&text=let+a', pairs), [400, 'BAD_INPUT'])
  const body = '--AbC\r\nContent-Disposition: form-data; name="timeoutMs"\r\n\r\n1.5\r\n--AbC--\r\n'
  const parts = { 'content-type': 'Multipart/Form-Data; boundary=AbC' }
  assert.deepEqual(await refusal(body, parts), [400, 'BAD_INPUT'])
  const text = body.replace('timeoutMs', 'text').replace('1.5', 'let a')
  assert.deepEqual(await scored(text, parts), [200, undefined])
})

/** Whether something is being scored. */
async function isBusy() {
  return (await (await fetch(`${url}/api/stats`)).json()).zone.running > 0
}

test(
  'cancelled scores are counted: those that time out, and those whose client disconnects',
  { timeout: 4 * WAIT_MS_MAX },
  async () => {
    const counts = async () => (await (await fetch(`${url}/api/stats`)).json()).cancelled
    const { late, disconnected } = await counts()
    // Every declaration is compared with all before it: longer than any limit.
    const long = () => `let ${Array.from({ length: 60_000 }, (_, index) => `a${index}`)} // ${Math.random()}`
    assert.deepEqual(await refusal(JSON.stringify({ text: long(), timeoutMs: 1 }), JSON_TYPE), [
      504,
      'TASK_TIMEOUT',
    ])
    assert.deepEqual(await counts(), { late: late + 1, disconnected })
    // With what was just cancelled, for its grace.
    await eventually(async () => !(await isBusy()), 'the end of the score that was cancelled')
    const leaving = new AbortController()
    const asked = fetch(`${url}/api/score`, { method: 'POST', body: long(), signal: leaving.signal })
    await eventually(isBusy, 'the start of a score')
    leaving.abort()
    await assert.rejects(asked)
    await eventually(async () => (await counts()).disconnected > disconnected, 'the count of those who left')
    assert.deepEqual(await counts(), { late: late + 1, disconnected: disconnected + 1 })
  },
)

test('where no report has been made a page explains how', async () => {
  const answer = await fetch(`${url}/report`)
  assert.match(answer.headers.get('content-type'), /^text\/html/)
  const page = await answer.text()
  if (existsSync(new URL('../../bench/dist/report/report.html', import.meta.url))) return
  assert.equal(answer.status, 404)
  assert.match(answer.headers.get('content-security-policy'), /default-src 'self'/)
  assert.match(page, /npm run report -- --quick/)
})

test('the plan of every worker has the costs of each score', { timeout: 4 * WAIT_MS_MAX }, async () => {
  let [text, first] = ['']
  // A score that took too long has costs too: what is compared is one that did not, of a new text.
  do {
    await eventually(async () => !(await isBusy()), 'the end of all scores')
    ;[first] = (await plans()).values()
    text = `let plan = ${Math.random()}`
  } while ((await refusal(text))[1] === 'TASK_TIMEOUT')
  assert.match(first, /^arrow, async, .*; costs in all workers\n/)
  const afterMiss = await plans()
  assert.deepEqual(await refusal(text), [200, undefined])
  const afterHit = await plans()
  for (const plan of afterMiss.values()) {
    for (const step of ['"score"', 'on zone corespun.cpu', 'parsed', 'analyse'])
      assert.equal(countOf(plan, step), countOf(first, step) + 1, `${step}\n${first}${plan}`)
    assert.match(plan, /^ +parsed +\d+ calls, \d+\.\d\d ms each$/m)
  }
  for (const plan of afterHit.values()) {
    const [before] = afterMiss.values()
    assert.equal(countOf(plan, '"score"'), countOf(before, '"score"') + 1)
    assert.equal(countOf(plan, 'through store'), countOf(before, 'through store') + 1)
    assert.equal(countOf(plan, 'parsed'), countOf(before, 'parsed'))
  }
})

/** The plan as each of the two workers reports it, by worker. */
async function plans() {
  const plans = new Map()
  await eventually(async () => {
    // A connection of its own, so that another worker may get it.
    const answer = await fetch(`${url}/api/stats`, { headers: { connection: 'close' } })
    const { worker, plan } = await answer.json()
    return plans.set(worker, plan).size === 2
  }, 'the plans of both workers')
  return plans
}

/** How often a step of the plan was taken; 0 for one without costs. */
function countOf(plan, step) {
  const line = plan.split('\n').find((each) => each.trim().startsWith(step))
  assert.ok(line !== undefined, plan)
  return Number(/ {2}(\d+) \w/.exec(line.trim())?.[1] ?? 0)
}
