/**
 * A record in the frame of a call's arguments.
 *
 * The first byte of such a frame, its version, has one of its highest bits set; so a worker looks at one byte
 * of a call that carries nothing, and no argument can pass for a record. A context that is fixed follows as
 * bytes, which are written once and read once for all calls that repeat it; the deadline of the call is
 * behind them. The parts of other contexts are elements behind the arguments, the last one contains which.
 */
import type { Bridge } from '../../bridge/index.ts'
import { HEADER_BYTES } from '../../native/index.ts'
import { TransportError, processFrame, readFrame } from '../../transport/internal.ts'
import type { Task } from '../ground/task.ts'
import { thisCarrier } from './carrier.ts'
import type { CpuAccount } from '../ground/cpu.ts'
import { type CallRecord, Carried, type TraceContext } from '../ground/record.ts'

/**
 * The bits of a frame's first byte: a context is among the elements, the CPU time of the task is to be
 * measured, a context that is fixed or a deadline follows.
 */
const Mark = { elements: 0x80, cpu: 0x40, tail: 0x20, none: 0x1f } as const
/** The parts of a context, in this order; above them, how many elements its values are. */
const Has = { traceparent: 1, tracestate: 2, baggage: 4, trace: 7 } as const
const VALUES_SHIFT = 3

/** The last two bytes: the length of the context in front of them, and whether the deadline is between. */
const LENGTH_BYTES = 2
const time = new Float64Array(1)
const timeBytes = new Uint8Array(time.buffer)
const NO_BYTES = new Uint8Array(0)

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
  const { carried, deadlineMs, cpu } = record
  const isFixed = carried === undefined || carried.isFixed
  const hasTail = deadlineMs !== Infinity || (isFixed && carried !== undefined)
  const mark = (isFixed ? 0 : Mark.elements) | (cpu === undefined ? 0 : Mark.cpu) | (hasTail ? Mark.tail : 0)
  let length: number
  try {
    length = bridge.write(isFixed ? args : elementsOf(args, carried), 'args', lends)
  } catch (error) {
    throw isFixed ? error : named(error, args.length, carried)
  }
  const { out, writer } = bridge
  if (length >= 0) out[HEADER_BYTES] |= mark
  else if (writer.overflow !== undefined) writer.overflow[0] |= mark
  if (!hasTail) return length
  return withTail(bridge, length, isFixed && carried !== undefined ? bytesOf(carried) : NO_BYTES, deadlineMs)
}

/** Puts a context and a deadline behind the frame that was written; as `Bridge.write`. */
function withTail(bridge: Bridge, length: number, context: Uint8Array, deadlineMs: number): number {
  const { out, writer } = bridge
  const isTimed = deadlineMs !== Infinity
  const moreBytes = context.length + (isTimed ? timeBytes.length : 0) + LENGTH_BYTES
  const end = HEADER_BYTES + length
  if (length >= 0 && end + moreBytes <= out.length) {
    putTail(out, end, context, deadlineMs)
    return length + moreBytes
  }
  const frame = length >= 0 ? out.subarray(HEADER_BYTES, end) : (writer.overflow ?? NO_BYTES)
  const whole = new Uint8Array(frame.length + moreBytes)
  whole.set(frame)
  putTail(whole, frame.length, context, deadlineMs)
  writer.overflow = whole
  return -1
}

function putTail(into: Uint8Array, start: number, context: Uint8Array, deadlineMs: number): void {
  let at = putBytes(into, start, context)
  if (deadlineMs !== Infinity) {
    time[0] = deadlineMs
    at = putBytes(into, at, timeBytes)
  }
  const word = (context.length << 1) | (deadlineMs === Infinity ? 0 : 1)
  into[at] = word
  into[at + 1] = word >>> 8
}

/** A loop: of few bytes, `set` takes longer. */
function putBytes(into: Uint8Array, at: number, bytes: Uint8Array): number {
  const { length } = bytes
  for (let index = 0; index < length; index++) into[at + index] = bytes[index]
  return at + length
}

/** The bytes of a context that is fixed. */
function bytesOf(carried: Carried): Uint8Array {
  return (carried.bytes ??= processFrame(elementsOf([], carried)))
}

/** The arguments with the parts of a context behind them. */
function elementsOf(args: readonly unknown[], { trace, values }: Carried): unknown[] {
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
  if (mark <= Mark.none) return readFrame(bytes, start, end) as unknown[]
  bytes[start] = mark & Mark.none
  const carrier = thisCarrier()
  const cpu = (mark & Mark.cpu) === 0 ? undefined : carrier.metered().account()
  const isTail = (mark & Mark.tail) !== 0
  const argsEnd = isTail ? takeTail(bytes, start, end, task, cpu) : end
  const all = listed(
    cpu === undefined
      ? readFrame(bytes, start, argsEnd)
      : cpu.meter.chargeFor(cpu, end - start, () => readFrame(bytes, start, argsEnd)),
  )
  const carried = (mark & Mark.elements) === 0 ? undefined : takeElements(all)
  if (carried !== undefined || !isTail)
    task.record = { deadlineMs: task.record?.deadlineMs ?? Infinity, carried, cpu }
  return all.length === 0 ? undefined : all
}

/** Take the record that lies as bytes at the end of a frame. Returns where it begins. */
function takeTail(
  bytes: Uint8Array,
  start: number,
  end: number,
  task: Task,
  cpu: CpuAccount | undefined,
): number {
  let at = end - LENGTH_BYTES
  const word = bytes[at] | (bytes[at + 1] << 8)
  const from = at - (word >>> 1) - ((word & 1) === 0 ? 0 : timeBytes.length)
  if (!(from >= start)) throw malformed(end - start)
  let deadlineMs = Infinity
  if ((word & 1) !== 0) {
    at -= timeBytes.length
    for (let index = 0; index < timeBytes.length; index++) timeBytes[index] = bytes[at + index]
    deadlineMs = time[0]
  }
  const carried = from === at ? undefined : carriedIn(bytes, from, at)
  const isAlone = deadlineMs === Infinity && cpu === undefined && carried !== undefined
  task.record = isAlone ? carried.alone : { deadlineMs, carried, cpu }
  return from
}

/** The context that the last task of this thread has received as bytes. */
let received: Carried | undefined

function carriedIn(bytes: Uint8Array, start: number, end: number): Carried {
  if (received !== undefined && isAt(bytes, start, end, received.bytes ?? NO_BYTES)) return received
  const carried = takeElements(listed(readFrame(bytes, start, end)))
  carried.bytes = bytes.slice(start, end)
  Object.freeze(carried.trace)
  return (received = carried)
}

function isAt(bytes: Uint8Array, start: number, end: number, expected: Uint8Array): boolean {
  if (end - start !== expected.length) return false
  for (let index = 0; index < expected.length; index++)
    if (bytes[start + index] !== expected[index]) return false
  return true
}

/** A value that a whole frame has as a list. */
function listed(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw malformed(0)
  return value
}

/** Take the elements of a context from the end of `all`. */
function takeElements(all: unknown[]): Carried {
  const has = all.pop() as number
  const trace = (has & Has.trace) === 0 ? undefined : takeTrace(all, has)
  const count = has >>> VALUES_SHIFT
  return new Carried(trace, count === 0 ? undefined : takeValues(all, count))
}

function takeValues(all: unknown[], count: number): unknown[] {
  if (count > all.length) throw malformed(0)
  const values: unknown[] = []
  for (let left = count; left > 0; left--) values.push(all.pop())
  return values
}

function malformed(offset: number): TransportError {
  return new TransportError('TRANSPORT_MALFORMED', { offset, why: 'the context of a call is cut' })
}

function takeTrace(all: unknown[], has: number): TraceContext {
  const trace: Record<string, unknown> = {}
  if ((has & Has.baggage) !== 0) trace['baggage'] = all.pop()
  if ((has & Has.tracestate) !== 0) trace['tracestate'] = all.pop()
  if ((has & Has.traceparent) !== 0) trace['traceparent'] = all.pop()
  return trace
}

/** The error with the path of the caller's own arguments. */
function named(error: unknown, argsCount: number, { values = [] }: Carried): unknown {
  if (!(error instanceof TransportError)) return error
  const facts = error.facts as { readonly path?: string }
  const index = Number(/^args\[(\d+)\]/.exec(facts.path ?? '')?.[1] ?? -1)
  if (index < argsCount) return error
  const name = values[values.length - 2 - (index - argsCount)]
  const path = facts.path?.replace(/^args\[\d+\]/, `context.${name}`)
  const options = error.cause === undefined ? undefined : { cause: error.cause }
  return new TransportError(error.code, { ...facts, path }, options)
}
