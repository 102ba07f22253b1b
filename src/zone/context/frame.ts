/**
 * A record in the frame of a call's arguments: its parts are elements behind them, the last one contains
 * which.
 *
 * The first byte of such a frame, its version, has its highest bit set; so a worker looks at one byte of a
 * call that carries nothing, and no argument can pass for a record.
 */
import type { Bridge } from '../../bridge/index.ts'
import { HEADER_BYTES } from '../../native/index.ts'
import { TransportError, readFrame } from '../../transport/internal.ts'
import type { Task } from '../call/task.ts'
import { thisCarrier } from './carrier.ts'
import type { CallRecord } from './record.ts'

/** The bit of a frame's first byte. */
const MARK = 0x80
/** The parts of a record, in this order; above them, how many elements its values are. */
const Has = { deadline: 1, trace: 2 } as const
const VALUES_SHIFT = 2

/**
 * Write arguments, with a record if there is one; as `Bridge.write`.
 * @throws {TransportError} when an argument or a carried value cannot travel.
 */
export function writeArguments(
  bridge: Bridge,
  args: readonly unknown[],
  record: CallRecord | undefined,
  lends: boolean,
): number {
  if (record === undefined) return args.length === 0 ? 0 : bridge.write(args, 'args', lends)
  const { deadlineMs, trace, values } = record
  // Loops: of few elements, a spread takes three times as long.
  const all: unknown[] = []
  for (let index = 0; index < args.length; index++) all.push(args[index])
  let has = 0
  if (values !== undefined) {
    has = values.length << VALUES_SHIFT
    for (let index = 0; index < values.length; index++) all.push(values[index])
  }
  if (trace !== undefined) {
    has |= Has.trace
    all.push(trace.traceparent, trace.tracestate, trace.baggage)
  }
  if (deadlineMs !== Infinity) {
    has |= Has.deadline
    all.push(deadlineMs)
  }
  all.push(has)
  let length: number
  try {
    length = bridge.write(all, 'args', lends)
  } catch (error) {
    throw named(error, args.length, record)
  }
  if (length >= 0) bridge.out[HEADER_BYTES] |= MARK
  else if (bridge.writer.overflow !== undefined) bridge.writer.overflow[0] |= MARK
  return length
}

/**
 * Read the arguments of a task, which keeps the record behind them.
 * @throws {TransportError} when this thread cannot read them.
 */
export function readArguments(
  bytes: Uint8Array,
  start: number,
  end: number,
  task: Task,
): unknown[] | undefined {
  if (bytes[start] < MARK) return readFrame(bytes, start, end) as unknown[]
  bytes[start] &= ~MARK
  thisCarrier()
  const all = readFrame(bytes, start, end) as unknown[]
  const has = all.pop() as number
  const deadlineMs = (has & Has.deadline) === 0 ? Infinity : (all.pop() as number)
  const trace = (has & Has.trace) === 0 ? undefined : traceOf(all.splice(-3))
  const count = has >>> VALUES_SHIFT
  const values = count === 0 ? undefined : all.splice(-count)
  task.record = { deadlineMs, trace, values }
  return all.length === 0 ? undefined : all
}

function traceOf([traceparent, tracestate, baggage]: unknown[]): CallRecord['trace'] {
  const trace: Record<string, unknown> = {}
  if (traceparent !== undefined) trace['traceparent'] = traceparent
  if (tracestate !== undefined) trace['tracestate'] = tracestate
  if (baggage !== undefined) trace['baggage'] = baggage
  return trace
}

/** The error with the path of the caller's own arguments. */
function named(error: unknown, argsCount: number, { values = [] }: CallRecord): unknown {
  if (!(error instanceof TransportError)) return error
  const facts = error.facts as { readonly path?: string }
  const index = Number(/^args\[(\d+)\]/.exec(facts.path ?? '')?.[1] ?? -1)
  if (index < argsCount) return error
  const path = facts.path?.replace(/^args\[\d+\]/, `context.${values[index - argsCount - 1]}`)
  const options = error.cause === undefined ? undefined : { cause: error.cause }
  return new TransportError(error.code, { ...facts, path }, options)
}
