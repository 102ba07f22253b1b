/**
 * Rooms over NATS, at a server of its own, and what happens to them when it is killed.
 *
 * The tests themselves are in rooms/rooms.test.support.ts; without a server they are skipped.
 */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { connect } from './connect.ts'
import { SKIP, startServer } from './engine/nats/server.test.support.ts'
import type { RoomsEvent } from './rooms/events.ts'
import { roomTests } from './rooms/rooms.test.support.ts'

if (SKIP !== false) test('nats: rooms', { skip: SKIP })
else {
  const server = startServer()
  after(async () => (await server)[Symbol.asyncDispose]())
  roomTests('nats', async () => connect((await server).url))
}

test(
  'nats: a server that is killed is reported, and what comes after its return arrives',
  { skip: SKIP },
  async () => {
    const first = await startServer()
    await using one = await connect(first.url)
    await using other = await connect(first.url)
    const [mine, others] = [one.rooms('killed'), other.rooms('killed')]
    const seen: string[] = []
    const waiting: (() => void)[] = []
    const on = (message: unknown): void => {
      seen.push((message as RoomsEvent).kind)
      for (const wake of waiting.splice(0)) wake()
    }
    const until = async (isSo: () => boolean): Promise<void> => {
      while (!isSo()) await new Promise<void>((resolve) => waiting.push(resolve))
    }
    subscribe('corespun:fleet:rooms', on)
    const received: string[] = []
    const joined = await mine.join(() => {})
    const far = await others.join((_, message) => {
      received.push(String(message))
      for (const wake of waiting.splice(0)) wake()
    })
    joined.send('a', 'before')
    await until(() => received.length === 1)
    const warned = once(process, 'warning')
    await first.kill()
    await until(() => seen.filter((kind) => kind === 'lost').length === 2)
    assert.match(String((await warned)[0]), /cannot be reached/)
    joined.send('a', 'while it is away')
    await until(() => seen.includes('dropped'))
    await using _ = await startServer(Number(new URL(first.url).port), first.folder)
    await until(() => seen.filter((kind) => kind === 'found').length === 2)
    await other.engine.messages!.flush() // behind its subscription
    joined.send('a', 'after')
    await until(() => received.length === 2)
    assert.deepEqual(received, ['before', 'after'])
    assert.deepEqual([mine.stats().dropped, others.stats().missed], [1, 1])
    await joined.leave()
    await far.leave()
    unsubscribe('corespun:fleet:rooms', on)
  },
)
