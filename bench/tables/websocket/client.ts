/**
 * The client of table websocket, bench/floor/websocket.c, as a process for each slice.
 *
 * It opens its connections first; the CPU time of the server is read when they are open and when all messages
 * have arrived.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { BenchError } from '../../harness/errors.ts'
import type { Server } from '../http/servers.ts'

/** What a client is to do. */
export interface Traffic {
  readonly kind: 'echo' | 'room'
  readonly connections: number
  readonly seconds: number
  /** Messages to a room that are on their way at once. */
  readonly inFlight: number
}

/** What was received in a slice. */
export interface Received {
  readonly messages: number
  readonly seconds: number
  /** CPU time of the server. */
  readonly cpuSeconds: number
  /** From a message to its echo; 0 in a room. */
  readonly us: Readonly<Record<'p50' | 'p99', number>>
}

interface Printed extends Omit<Received, 'cpuSeconds'> {
  /** Messages that were not the known ones, or not in order, and missing ones. */
  readonly wrong: number
}

/**
 * Run one client to its end.
 * @throws {BenchError} `CONTENDER_DIED` when a connection ended, `WRONG_ANSWER` for a message that was wrong
 *   or missing.
 */
export async function receive(
  command: readonly string[],
  server: Server,
  { kind, connections, seconds, inFlight }: Traffic,
): Promise<Received> {
  const [program, ...words] = [...command, server.port, kind, connections, seconds, inFlight].map(String)
  const client = spawn(program, words, { stdio: ['pipe', 'pipe', 'pipe'] })
  let why = ''
  client.stderr.on('data', (chunk: Buffer) => (why += String(chunk)))
  const closed = once(client, 'close')
  const lines = createInterface({ input: client.stdout })[Symbol.asyncIterator]()
  const opened = await lines.next()
  const before = server.cpuSeconds
  client.stdin.end('\n')
  const printed = await lines.next()
  const cpuSeconds = server.cpuSeconds - before
  await closed
  if (opened.done === true || printed.done === true)
    throw new BenchError('CONTENDER_DIED', { contender: server.name, why: why.trim() })
  const { wrong, ...found } = JSON.parse(printed.value) as Printed
  if (wrong === 0) return { ...found, cpuSeconds }
  const got = `${wrong} wrong or missing beside ${found.messages}`
  throw new BenchError('WRONG_ANSWER', { contender: server.name, work: kind, got, expected: 'none' })
}
