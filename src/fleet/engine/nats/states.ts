/**
 * What is in the queues that JetStream has, without opening any.
 *
 * A rank has a consumer, once somebody has taken from the queue: what it has not delivered waits, what is not
 * acknowledged is lent. How long the first that waits has waited takes reading it.
 */
import type { ConsumerInfo, JetStreamManager } from '@nats-io/jetstream'
import { type QueueState, RANKS } from '../engine.ts'
import { hasCode } from '../../errors.ts'
import { confirmed } from './confirmed.ts'
import { itemSubject, queueOfStream, takersName, valuesStream } from './names.ts'

export async function queueStates(manager: JetStreamManager): Promise<QueueState[]> {
  const streams = await confirmed('listing queues', all(manager.streams.names(itemSubject('*', '*', '*'))))
  return Promise.all(streams.map((stream) => confirmed(`reading ${stream}`, stateOf(manager, stream))))
}

async function stateOf(manager: JetStreamManager, stream: string): Promise<QueueState> {
  const { state, ts } = await manager.streams.info(stream)
  const consumers = await all(manager.consumers.list(stream))
  const lent = consumers.reduce((sum, { num_ack_pending }) => sum + num_ack_pending, 0)
  const waiting = Math.max(0, state.messages - lent)
  const nowMs = ts === undefined ? Date.now() : Date.parse(ts)
  const firsts = consumers.length === 0 ? [state.first_ts] : await firstTimes(manager, stream, consumers)
  const firstMs = Math.min(...firsts.map((time) => Date.parse(time)))
  const waitedMs = waiting === 0 || firsts.length === 0 ? 0 : Math.max(0, nowMs - firstMs)
  return { name: queueOfStream(stream), waiting, lent, waitedMs }
}

/** For each rank, when the first item that nobody has had was added. */
async function firstTimes(
  manager: JetStreamManager,
  stream: string,
  consumers: readonly ConsumerInfo[],
): Promise<string[]> {
  const times: string[] = []
  for (const { num_pending, delivered, config } of consumers) {
    if (num_pending === 0) continue
    const next = { seq: delivered.stream_seq + 1, next_by_subj: config.filter_subject ?? '>' }
    const first = await manager.streams.getMessage(stream, next)
    if (first !== null) times.push(first.timestamp)
  }
  return times
}

/** Up to which sequence the items of each rank were lent; `undefined` for who may not ask. */
export async function deliveredOf(manager: JetStreamManager, stream: string): Promise<number[] | undefined> {
  const asked = RANKS.map((rank) =>
    manager.consumers.info(stream, takersName(rank)).catch((error: unknown) => {
      // Nobody has taken from it yet.
      if (Object(error).name !== 'ConsumerNotFoundError') throw error
    }),
  )
  const found = await confirmed(`listing ${stream}`, Promise.all(asked)).catch((error: unknown) => {
    if (!hasCode(error, 'FLEET_DENIED')) throw error
  })
  return found?.map((info) => info?.delivered.stream_seq ?? 0)
}

/** How many values a store has; marks of deletions count for a moment. */
export async function valuesIn(manager: JetStreamManager, name: string): Promise<number> {
  const info = manager.streams.info(valuesStream(name)).catch((error: unknown) => {
    if (Object(error).name !== 'StreamNotFoundError') throw error
  })
  return (await confirmed(`counting ${name}`, info))?.state.messages ?? 0
}

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}
