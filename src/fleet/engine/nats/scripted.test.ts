/**
 * Requests and the taking of items, at a server that is played: each message comes when the test sends it.
 * What a real server does is in nats.test.ts; here is what takes luck there.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { Msg, NatsConnection } from '@nats-io/transport-node'
import { CLOCK } from '../engine.ts'
import { Requests } from './requests.ts'
import { ServerTime } from './server-time.ts'
import { type Source, Taking } from './taking.ts'

type Callback = (error: Error | null, message: Msg) => void

interface Published {
  readonly subject: string
  readonly text: string
  readonly reply: string
}

/** A connection whose other side is the test. */
class Played {
  readonly published: Published[] = []
  readonly #callbacks: Callback[] = []
  readonly #statuses: unknown[] = []
  #ended!: () => void
  readonly #end = new Promise<void>((resolve) => (this.#ended = resolve))
  #wake: () => void = () => {}
  isOver = false

  get connection(): NatsConnection {
    return this as unknown as NatsConnection
  }

  subscribe(_: string, { callback }: { readonly callback: Callback }): object {
    this.#callbacks.push(callback)
    return { isClosed: () => false, drain: () => Promise.resolve() }
  }

  publish(subject: string, payload: Uint8Array | string, options: { readonly reply: string }): void {
    this.published.push({ subject, text: String(payload), reply: options.reply })
  }

  isClosed(): boolean {
    return this.isOver
  }

  async closed(): Promise<void> {
    await this.#end
  }

  close(): void {
    this.isOver = true
    this.#ended()
    this.#wake()
  }

  async *status(): AsyncGenerator {
    while (!this.isOver) {
      if (this.#statuses.length > 0) yield this.#statuses.shift()
      else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  report(status: unknown): void {
    this.#statuses.push(status)
    this.#wake()
  }

  receive(message: Partial<Msg>): void {
    for (const callback of this.#callbacks) callback(null, { data: new Uint8Array(), ...message } as Msg)
  }

  /** Nothing is there for a request. */
  refuse({ reply }: Published): void {
    this.receive({ subject: reply, headers: { code: 404 } as never })
  }

  /** An item of rank 1. */
  lend(id: string): void {
    const reply = '$JS.ACK.s.c.1.1.1.1700000000000000000.0'
    this.receive({ subject: `corespun.queue.q.1.${id}`, reply, data: new Uint8Array([1]) })
  }
}

/** Waits for the request that the taking makes next. */
async function next(played: Played): Promise<Published & { readonly rank: number; readonly waits: boolean }> {
  for (let left = 100; played.published.length === 0; left -= 1) {
    assert.ok(left > 0, 'nothing is requested')
    await turn()
  }
  const found = played.published.shift()!
  return { ...found, rank: Number(found.subject), waits: found.text.includes('expires') }
}

function taking(leasesMax = 64): { readonly played: Played; readonly lent: string[]; end(): void } {
  const played = new Played()
  const source = {
    connection: played.connection,
    requests: new Requests(played.connection, 'replies'),
    inbox: () => 'pull',
    subjects: ['0', '1', '2'],
    time: new ServerTime(CLOCK, () => Promise.resolve(0)),
  } satisfies Source
  const lent: string[] = []
  const taken = new Taking(source, ({ id }) => void lent.push(id), { leasesMax, leaseMs: 1000 })
  void taken.run()
  const end = (): void => {
    taken.end()
    played.close()
  }
  return { played, lent, end }
}

/** All ranks are empty, but for the last answer; returns the requests that wait at 0 and 1, and that at 2. */
async function emptied(played: Played): Promise<Published[]> {
  const waiting: Published[] = []
  for (const rank of [0, 1]) {
    const asked = await next(played)
    assert.deepEqual([asked.rank, asked.waits], [rank, false])
    played.refuse(asked)
    waiting.push(await next(played))
  }
  return [...waiting, await next(played)]
}

test('an item that comes as the last rank is found empty is followed by others', async () => {
  const { played, lent, end } = taking()
  const [, , last] = await emptied(played)
  // In one chunk of the connection: the request at rank 1 ends just when those at all ranks wait.
  played.refuse(last)
  played.lend('a')
  assert.equal((await next(played)).waits, true) // at rank 2
  const { rank, waits } = await next(played)
  assert.deepEqual([lent, rank, waits], [['a'], 1, false])
  end()
})

test('where items come, requests wait for twice as many each time, within the room', async () => {
  const { played, end } = taking(20)
  const [, , last] = await emptied(played)
  played.refuse(last)
  await next(played)
  const batches: number[] = []
  for (let batch = 1, item = 0; batches.length < 4; batches.push(batch)) {
    for (let each = 0; each < batch; each += 1) played.lend(`i${(item += 1)}`)
    played.refuse(await next(played))
    batch = (JSON.parse((await next(played)).text) as { batch: number }).batch
  }
  // A quarter of what is free: 19, 17, 13, then 10.
  assert.deepEqual(batches, [2, 4, 3, 2])
  end()
})

test('a request has one reply, or an error by which it is known what has happened', async () => {
  const played = new Played()
  const requests = new Requests(played.connection, 'replies')
  const ask = (subject: string): Promise<Msg> => requests.request(subject)
  const [fine, nobody, denied, open] = [ask('a'), ask('b'), ask('c'), ask('d')]
  const [first, second] = played.published
  played.receive({ subject: first.reply, data: new Uint8Array([7]) })
  played.receive({ subject: first.reply, data: new Uint8Array([8]) })
  played.receive({ subject: 'replies.none' })
  played.receive({ subject: second.reply, headers: { code: 503 } as never })
  assert.deepEqual((await fine).data, new Uint8Array([7]))
  await assert.rejects(nobody, { name: 'NoRespondersError' })
  const error = Object.assign(new Error('denied'), { operation: 'publish', subject: 'c' })
  played.report({ type: 'error', error: Object.assign(new Error('other'), { operation: 'subscription' }) })
  played.report({ type: 'error', error })
  await assert.rejects(denied, (why) => why === error)
  let replies = 0
  requests.ask('e', new Uint8Array(), () => (replies += 1))
  played.close()
  await assert.rejects(open, { name: 'ClosedConnectionError' })
  await assert.rejects(ask('f'), { name: 'ClosedConnectionError' })
  assert.equal(replies, 0)
})

test('what has no reply ends after its time, and later questions after theirs', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 0
  t.mock.method(performance, 'now', () => nowMs)
  const pass = (ms: number): void => {
    nowMs += ms
    t.mock.timers.tick(ms)
  }
  const played = new Played()
  const requests = new Requests(played.connection, 'replies')
  const ended: string[] = []
  const ask = (subject: string): void =>
    void requests.request(subject).catch(({ name }: Error) => ended.push(`${subject} ${name} ${nowMs}`))
  ask('a')
  pass(3000)
  ask('b')
  pass(2000)
  await turn()
  assert.deepEqual(ended, ['a TimeoutError 5000'])
  pass(3000)
  await turn()
  assert.deepEqual(ended, ['a TimeoutError 5000', 'b TimeoutError 8000'])
  played.close()
})
