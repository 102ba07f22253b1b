/**
 * The stacks of errors that cross threads: the worker's frames, then those of who called.
 *
 * Taking a stack costs more than a whole call (some 10 µs against 2.5), so a call that ends well takes none.
 * When one fails its promise follows one made here, and V8 itself finds who awaits it: the frames that an
 * error of the caller's own thread would show behind its last `await`. Where nobody awaits yet there are
 * none; a zone made with `callStacks` takes the stack at every call and always has it.
 */
import { types } from 'node:util'
import { fileURLToPath } from 'node:url'
import { withStackLimit } from '../../base/index.ts'

/** Where a call was made: an object that formats its stack when it is first asked for. */
export interface CallSite {
  readonly stack?: unknown
}

/** The zone of a failed call, as far as its stack needs it. */
export interface FailedCall {
  readonly id: string
  /** Where it was called, if that was taken then. */
  readonly site: CallSite | undefined
}

/** A stack that went through many zones, or through one many times, grows no further. */
const STACK_CHARS_MAX = 16_384
/** How deep the causes of an error are looked at. */
const CAUSES_MAX = 8

/** Errors that have their caller's frames. */
const traced = new WeakSet<object>()

/** Where the function that was called `above` this one was called from. */
export function siteOf(above: Function): CallSite {
  const site: CallSite = {}
  Error.captureStackTrace(site, above)
  return site
}

/**
 * A promise that rejects with `error`, whose stack continues with the frames that await it by then. To be
 * passed to the `resolve` of a promise. Values that are not Errors are left unchanged.
 * @throws `error`, as the rejection.
 */
export async function rejection(error: unknown, call: FailedCall): Promise<never> {
  if (types.isNativeError(error) && !traced.has(error)) {
    if (call.site === undefined) {
      // The first turn ends before the promise that was resolved with this one hangs on it.
      await undefined
      await undefined
    }
    addCaller(error, call.id, call.site ?? siteOf(rejection))
  }
  throw error
}

/** Makes an error without a stack, where a stack is useless: in a timer, or for mail. */
export function stackless<Made extends Error>(make: () => Made): Made {
  return withStackLimit(0, make)
}

/** Put the frames of `site` behind those of an error that came from a zone. */
export function addCaller(error: unknown, zone: string, site: CallSite): void {
  try {
    if (!types.isNativeError(error) || traced.has(error)) return
    const { stack } = error
    const frames = typeof site.stack === 'string' ? framesOf(site.stack) : []
    if (frames.length === 0 || typeof stack !== 'string' || stack.length > STACK_CHARS_MAX) return
    error.stack = [stack, `    at zone ${JSON.stringify(zone)} (called from)`, ...frames].join('\n')
    traced.add(error)
  } catch {
    // A class's own `load` may have made an error that lets nothing be changed.
  }
}

/** The lines of a stack that are frames, without Corespun's own and those of Node's loop. */
function framesOf(stack: string): string[] {
  return stack.split('\n').filter((line) => /^ +at /.test(line) && !isOwn(line) && !isOfLoop(line))
}

/** Take Corespun's frames out of the stack of an error, and of what caused it: only the user's lines stay. */
export function hideOwnFrames(error: unknown, causesMax = CAUSES_MAX): void {
  try {
    if (!types.isNativeError(error)) return
    hideIn(error)
    if (causesMax === 0) return
    if (Object.hasOwn(error, 'cause')) hideOwnFrames(error.cause, causesMax - 1)
    const errors: unknown = Object.hasOwn(error, 'errors') && (error as { errors?: unknown }).errors
    if (Array.isArray(errors)) for (const each of errors) hideOwnFrames(each, causesMax - 1)
  } catch {
    // A hostile error keeps the stack that it will not let go of.
  }
}

function hideIn(error: Error): void {
  const { stack } = error
  if (typeof stack !== 'string') return
  const lines = stack.split('\n')
  // Frames below are those of the worker's loop, or of a task that waits in a join.
  const bottom = lines.findIndex((line) => isFrameOf(ownFiles().dispatcher, line))
  const above = lines.slice(0, bottom < 0 ? lines.length : bottom).filter((line) => !isOwn(line))
  // In a bundle the dispatcher is a part of what all share, so Node's loop may be left at the end.
  const kept = above.slice(0, above.findLastIndex((line) => !isOfLoop(line)) + 1)
  if (kept.length < lines.length) error.stack = kept.join('\n')
}

/** The module that calls a task's function; in a bundle it is a part of the worker's, whose path differs. */
const DISPATCHER_MODULES = ['zone/worker/dispatcher', 'zone/worker/worker', 'zone/worker/main-thread']
const worker = (): URL => new URL('../worker/worker.js', import.meta.url)
/** The other modules between a call and a task's function, in either thread. */
const OWN_MODULES = [
  'zone/api/limited-zone',
  'zone/api/node-zone',
  'zone/api/spread',
  'zone/api/worker-zone',
  'zone/call/call',
  'zone/call/join',
  'zone/call/stacks',
  'zone/call/submitter',
  'zone/ground/task',
  'zone/parallel/chunks',
  'zone/parallel/engine',
  'zone/parallel/outbox',
  'zone/parallel/parallel',
  'bridge/bridge',
  'transport/functions/compile',
]

/** What frames of Corespun contain. */
interface OwnFiles {
  readonly dispatcher: readonly string[]
  /** The dispatcher's, all others, and where the code of all doors lies in a bundle. */
  readonly all: readonly string[]
}
let found: OwnFiles | undefined

/** Found at the first error of a thread, because it takes over a millisecond. */
function ownFiles(): OwnFiles {
  if (found !== undefined) return found
  const dispatcher = [...DISPATCHER_MODULES.flatMap(filesOf), `${worker().href}:`]
  const chunks = new URL('../../chunks/', import.meta.url).href
  return (found = { dispatcher, all: [...dispatcher, ...OWN_MODULES.flatMap(filesOf), chunks] })
}

/** A module as frames name it: compiled, and as its source map has it. */
function filesOf(module: string): string[] {
  const compiled = new URL(`../../${module}.js`, import.meta.url).href
  return [`${compiled}:`, `${fileURLToPath(new URL(`../../../src/${module}.ts`, import.meta.url))}:`]
}

function isFrameOf(files: readonly string[], line: string): boolean {
  return /^ +at /.test(line) && files.some((file) => line.includes(file))
}

/** A frame of Node's event loop. */
function isOfLoop(line: string): boolean {
  return /^ +at .*\(node:internal\/(process\/|timers)/.test(line)
}

function isOwn(line: string): boolean {
  return (
    isFrameOf(ownFiles().all, line) ||
    /^ +at (async )?(AsyncLocalStorage\.run|AsyncResource\.runInAsyncScope|Script\.runIn\w+) \(node:/.test(
      line,
    )
  )
}
