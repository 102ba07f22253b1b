/**
 * What writes on a condition mean at a leader that is played: writes are in flight before they are committed,
 * and while the leader is alone it accepts them and commits none. All follows from a seed (corespun/test).
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Msg, MsgHdrs, NatsConnection } from '@nats-io/transport-node'
import { hasCode } from '../../errors.ts'
import { check } from '../../../test/played.test.support.ts'
import { CONFIRM_MS, confirmed } from './confirmed.ts'
import { Requests } from './requests.ts'
import { Streams } from './stored.ts'

const SUBJECTS = ['a', 'b']
const STEPS = 120
const STEP_MS = 250
/** Of a request that a leader accepted at the last moment, and of one that the next leader has. */
const SETTLED_MS = 3 * CONFIRM_MS

interface Accepted {
  readonly text: string
  readonly reply: string
}

/** A connection whose other side is the leader of a stream. */
class Leader {
  isAlone = false
  readonly committed = new Map<string, { readonly sequence: number; readonly texts: string[] }>()
  readonly inFlight = new Map<string, Accepted>()
  #sequence = 0
  #receive!: (error: null, reply: Msg) => void

  get connection(): NatsConnection {
    return this as unknown as NatsConnection
  }

  subscribe(_: string, { callback }: { readonly callback: (error: null, reply: Msg) => void }): void {
    this.#receive = callback
  }

  isClosed(): boolean {
    return false
  }

  closed(): Promise<void> {
    return new Promise(() => {})
  }

  async *status(): AsyncGenerator {}

  sequenceOf(subject: string): number {
    return this.committed.get(subject)?.sequence ?? 0
  }

  publish(
    subject: string,
    bytes: Uint8Array,
    { reply, headers }: { readonly reply: string; readonly headers: MsgHdrs },
  ): void {
    const expected = Number(headers.get('Nats-Expected-Last-Subject-Sequence'))
    if (this.inFlight.has(subject)) return this.#refuse(reply, 10164)
    if (expected !== this.sequenceOf(subject)) return this.#refuse(reply, 10071)
    this.inFlight.set(subject, { text: Buffer.from(bytes).toString(), reply })
  }

  #refuse(reply: string, errCode: number): void {
    const error = { code: 400, err_code: errCode, description: 'wrong last sequence' }
    this.#reply(reply, { error })
  }

  #reply(subject: string, content: object): void {
    const message = { subject, data: new Uint8Array([1]), json: () => content } as unknown as Msg
    queueMicrotask(() => this.#receive(null, message))
  }

  /** The others have what it has accepted. */
  commit(): void {
    for (const [subject, { text, reply }] of this.inFlight) {
      const texts = [...(this.committed.get(subject)?.texts ?? []), text]
      this.committed.set(subject, { sequence: ++this.#sequence, texts })
      this.#reply(reply, { seq: this.#sequence })
    }
    this.inFlight.clear()
  }
}

/** Runs of writers against the leader, one for each seed; how often writes had which end. */
async function seeded(isEverAlone: boolean): Promise<Record<string, number>> {
  const ends: Record<string, number> = {}
  await check({ seeds: 60, stall: 0, stepsMax: 1_000_000 }, async ({ random, sleep }) => {
    const leader = new Leader()
    const newHeaders = (): MsgHdrs => new Map<string, string>() as unknown as MsgHdrs
    const streams = new Streams(new Requests(leader.connection, 'replies'), newHeaders)
    let open = 0
    const write = async (subject: string, text: string, sequence: number): Promise<void> => {
      const written = streams.write(subject, Buffer.from(text), { sequence })
      const isCommitted = (): boolean => leader.committed.get(subject)?.texts.includes(text) ?? false
      let end = 'written'
      try {
        await confirmed('writing', written, { key: subject, revision: sequence })
        assert.ok(isCommitted(), `${text} is confirmed, and no server has it`)
      } catch (error) {
        assert.ok(hasCode(error, 'FLEET_CONFLICT', 'FLEET_TIMEOUT'), String(error))
        end = error.code
        const isTaken = leader.sequenceOf(subject) !== sequence
        if (end === 'FLEET_CONFLICT') assert.ok(isTaken && !isCommitted(), `${text} conflicts with nobody`)
      }
      ends[end] = (ends[end] ?? 0) + 1
      open--
    }
    const writes: Promise<void>[] = []
    for (let step = 0; step < STEPS; step++) {
      const subject = SUBJECTS[Math.floor(random() * SUBJECTS.length)]
      if (random() < 0.6) {
        open++
        writes.push(write(subject, `write ${writes.length}`, leader.sequenceOf(subject)))
      }
      if (isEverAlone && random() < 0.05) leader.isAlone = true
      else if (leader.isAlone && random() < 0.05) {
        leader.isAlone = false
        // Another one has been elected, which never had it.
        if (random() < 0.5) leader.inFlight.clear()
      }
      if (!leader.isAlone && random() < 0.7) leader.commit()
      await sleep(STEP_MS)
    }
    for (let spentMs = 0; open > 0 && spentMs < SETTLED_MS; spentMs += STEP_MS) {
      leader.commit()
      await sleep(STEP_MS)
    }
    assert.equal(open, 0, 'a write has not ended')
    await Promise.all(writes)
  })
  return ends
}

test('a write conflicts only with one that is committed, however long its leader is alone', async () => {
  const ends = await seeded(true)
  assert.ok(ends.FLEET_TIMEOUT > 0, 'no leader was alone for long')
})

test('a write that meets another one in flight waits for what becomes of that', async () => {
  const ends = await seeded(false)
  assert.deepEqual(Object.keys(ends).sort(), ['FLEET_CONFLICT', 'written'])
})
