/**
 * A record in the frame of a call's arguments: its parts are elements behind them, the last one contains
 * which.
 *
 * The first byte of such a frame, its version, has one of its highest bits set; so a worker looks at one byte
 * of a call that carries nothing, and no argument can pass for a record.
 */
import type { Bridge } from '../../bridge/index.ts'
import { HEADER_BYTES } from '../../native/index.ts'
import { TransportError, readFrame } from '../../transport/internal.ts'
import type { Task } from '../call/task.ts'
import { thisCarrier } from './carrier.ts'
import type { CpuAccount } from './cpu.ts'
import type { CallRecord, TraceContext } from './record.ts'

const NOTHING = { deadlineMs: Infinity, trace: undefined, values: undefined }

/** The bits of a frame's first byte: it has a record, the CPU time of its task is to be measured. */
const Mark = { record: 0x80, cpu: 0x40, none: 0x3f } as const
/** The parts of a record, in this order; above them, how many elements its values are. */
const Has = { traceparent: 1, tracestate: 2, baggage: 4, deadline: 8 } as const
const VALUES_SHIFT = 4

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
  const all = elementsOf(args, record)
  let length: number
  try {
    length = bridge.write(all ?? args, 'args', lends)
  } catch (error) {
    throw named(error, args.length, record)
  }
  const mark = (all === undefined ? 0 : Mark.record) | (record.cpu === undefined ? 0 : Mark.cpu)
  if (length >= 0) bridge.out[HEADER_BYTES] |= mark
  else if (bridge.writer.overflow !== undefined) bridge.writer.overflow[0] |= mark
  return length
}

/** The arguments with the parts of the record behind them; `undefined` if there are no parts. */
function elementsOf(
  args: readonly unknown[],
  { deadlineMs, trace, values }: CallRecord,
): unknown[] | undefined {
  if (deadlineMs === Infinity && trace === undefined && values === undefined) return undefined
  let has = 0
  // Loops: of few elements, a spread takes three times as long.
  const all: unknown[] = []
  for (let index = 0; index < args.length; index++) all.push(args[index])
  if (values !== undefined) {
    has = values.length << VALUES_SHIFT
    // The reader takes elements from the end.
    for (let index = values.length - 1; index >= 0; index--) all.push(values[index])
  }
  if (trace !== undefined) {
    const { traceparent, tracestate, baggage } = trace
    if (traceparent !== undefined) has |= Has.traceparent
    if (traceparent !== undefined) all.push(traceparent)
    if (tracestate !== undefined) has |= Has.tracestate
    if (tracestate !== undefined) all.push(tracestate)
    if (baggage !== undefined) has |= Has.baggage
    if (baggage !== undefined) all.push(baggage)
  }
  if (deadlineMs !== Infinity) {
    has |= Has.deadline
    all.push(deadlineMs)
  }
  all.push(has)
  return all
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
  const mark = bytes[start]
  if (mark < Mark.cpu) return readFrame(bytes, start, end) as unknown[]
  bytes[start] = mark & Mark.none
  const carrier = thisCarrier()
  const cpu = (mark & Mark.cpu) === 0 ? undefined : carrier.metered().account()
  const read = (): unknown[] => readFrame(bytes, start, end) as unknown[]
  const all = cpu === undefined ? read() : cpu.meter.chargeFor(cpu, end - start, read)
  task.record = mark < Mark.record ? { ...NOTHING, cpu } : takeRecord(all, cpu)
  return all.length === 0 ? undefined : all
}

/** Take the elements of a record from the end of `all`. */
function takeRecord(all: unknown[], cpu: CpuAccount | undefined): CallRecord {
  const has = all.pop() as number
  const deadlineMs = (has & Has.deadline) === 0 ? Infinity : (all.pop() as number)
  const trace =
    (has & (Has.traceparent | Has.tracestate | Has.baggage)) === 0 ? undefined : takeTrace(all, has)
  let left = has >>> VALUES_SHIFT
  if (left === 0) return { deadlineMs, trace, values: undefined, cpu }
  const values: unknown[] = []
  for (; left > 0; left--) values.push(all.pop())
  return { deadlineMs, trace, values, cpu }
}

function takeTrace(all: unknown[], has: number): TraceContext {
  const trace: Record<string, unknown> = {}
  if ((has & Has.baggage) !== 0) trace['baggage'] = all.pop()
  if ((has & Has.tracestate) !== 0) trace['tracestate'] = all.pop()
  if ((has & Has.traceparent) !== 0) trace['traceparent'] = all.pop()
  return trace
}

/** The error with the path of the caller's own arguments. */
function named(error: unknown, argsCount: number, { values = [] }: CallRecord): unknown {
  if (!(error instanceof TransportError)) return error
  const facts = error.facts as { readonly path?: string }
  const index = Number(/^args\[(\d+)\]/.exec(facts.path ?? '')?.[1] ?? -1)
  if (index < argsCount) return error
  const name = values[values.length - 2 - (index - argsCount)]
  const path = facts.path?.replace(/^args\[\d+\]/, `context.${name}`)
  const options = error.cause === undefined ? undefined : { cause: error.cause }
  return new TransportError(error.code, { ...facts, path }, options)
}
