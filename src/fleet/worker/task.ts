/**
 * The worker's side of a far call: frames in, the function, frames out.
 *
 * Frames are read and written here and not in the host's main thread, so all cores share that work, and a
 * class needs to be registered only by the module that is called. Also errors are frames, so they keep their
 * class.
 */
import { isThenable, loadReason } from '../../base/index.ts'
import type { Failed } from '../../fiber/index.ts'
import { FunctionError, decode, encode } from '../../transport/index.ts'
import { ZoneError, currentTask } from '../../zone/index.ts'
import { portable, traceAbout, traceFailed } from '../../zone/internal.ts'
import { FleetError } from '../errors.ts'
import { PART } from '../wire.ts'
import { CurrentJob, type JobFacts, announce, asJob } from './current.ts'
import { NonRetryableError } from './non-retryable.ts'

/** A frame, whether it is that of an error, and of that whether a job that fails so fails for good. */
export type Outcome = readonly [isError: boolean, frame: Uint8Array, isFinal?: boolean]

/** Where a function is. */
export interface Target {
  readonly url: string
  readonly zone: string
  readonly name: string
}

type Awaitable<Value> = Value | Promise<Value>

/**
 * Call the function with the arguments of a frame, or run the part of an arrow in it. Rejects only with what
 * ends the task.
 */
export function call(target: Target, args: Uint8Array): Awaitable<Outcome> {
  if (target.name !== PART) {
    traceAbout(target.name)
    return outcomeOf(target, args)
  }
  traceAbout('arrow')
  return outcomeIn(partFrame(target, args))
}

/** Without a promise where the function returns none: most calls are short. */
function outcomeOf(target: Target, args: Uint8Array): Awaitable<Outcome> {
  try {
    const value = called(target, args)
    return isThenable(value) ? outcomeIn(encoded(value)) : [false, encode(value)]
  } catch (error) {
    return failed(error)
  }
}

const encoded = async (value: PromiseLike<unknown>): Promise<Uint8Array> => encode(await value)

async function outcomeIn(frame: Promise<Uint8Array>): Promise<Outcome> {
  try {
    return [false, await frame]
  } catch (error) {
    return failed(error)
  }
}

function failed(error: unknown): Outcome {
  traceFailed(error)
  const frame = errorFrame(error)
  return error instanceof NonRetryableError ? [true, frame, true] : [true, frame]
}

/** The items of what the function returns, and its error behind them. */
export function stream(target: Target, args: Uint8Array): AsyncGenerator<Outcome, void> {
  traceAbout(target.name) // the span of the task ends here
  return items(target, args)
}

async function* items(target: Target, args: Uint8Array): AsyncGenerator<Outcome, void> {
  try {
    const source = (await called(target, args)) as AsyncIterable<unknown>
    for await (const item of source) yield [false, encode(item)]
  } catch (error) {
    yield [true, errorFrame(error)]
  }
}

/** Call the function as a job, which may report its progress. */
export function job(target: Target, args: Uint8Array, about: JobFacts): Awaitable<Outcome> {
  traceAbout(target.name, about.trace)
  if (about.isAnnounced) announce(about)
  return asJob(new CurrentJob(about), () => outcomeOf(target, args))
}

type Module = Readonly<Record<string, unknown>>

/** Those that this worker has loaded: an import() costs several times a short call. */
const modules = new Map<string, Module>()

/** @throws {FunctionError} `FUNCTION_MODULE`. */
async function loaded(url: string): Promise<Module> {
  try {
    const module = (await import(url)) as Module
    modules.set(url, module)
    return module
  } catch (cause) {
    throw new FunctionError('FUNCTION_MODULE', { module: url, reason: loadReason(cause, url) }, { cause })
  }
}

function called(target: Target, args: Uint8Array): unknown {
  const module = modules.get(target.url)
  if (module === undefined) return loaded(target.url).then((first) => calledIn(first, target, args))
  return calledIn(module, target, args)
}

function calledIn(module: Module, target: Target, args: Uint8Array): unknown {
  return Reflect.apply(functionIn(module, target), currentTask(), decode(args) as unknown[]) as unknown
}

/** @throws {FleetError} `EXPORT_MISSING`. */
function functionIn(module: Module, { zone, name }: Pick<Target, 'zone' | 'name'>): Function {
  const fn = Object.hasOwn(module, name) ? module[name] : undefined
  if (typeof fn === 'function') return fn
  const exported = Object.keys(module).filter((key) => typeof module[key] === 'function')
  throw new FleetError('EXPORT_MISSING', { zone, name, exported })
}

/** The reply of a part of an arrow, which is loaded with the first one. */
async function partFrame({ url, zone }: Target, args: Uint8Array): Promise<Uint8Array> {
  const [module, { runPart }] = await Promise.all([loaded(url), import('../../arrow/internal.ts')])
  const [part, input] = decode(args) as unknown[]
  const reply = await runPart(part, input, url, (name) => functionIn(module, { zone, name }))
  if (reply.is !== 'failed') return encode(reply)
  try {
    return encode(reply)
  } catch {
    return encode({ ...reply, exit: travelling(reply.exit) })
  }
}

/** An exit, whose errors have only what can travel. */
function travelling(exit: Failed): Failed {
  const others = exit.others.map(travelling)
  if (exit.kind === 'failure') return { ...exit, error: decode(errorFrame(exit.error)), others }
  if (exit.kind === 'defect') return { ...exit, defect: decode(errorFrame(exit.defect)), others }
  return { ...exit, reason: decode(errorFrame(exit.reason)), others }
}

/** An error of the zone that runs a call or a job here, by the name that callers have for it. */
export function ofZone(error: unknown, zone: string): unknown {
  if (!(error instanceof ZoneError) || !('zone' in error.facts)) return error
  const { facts, cause } = error
  return new ZoneError(error.code, { ...facts, zone }, cause === undefined ? undefined : { cause })
}

/** An error as a frame: as it is, or what of it can travel. */
export function errorFrame(error: unknown): Uint8Array {
  for (const reduced of [() => error, () => stripped(portable(error, error)), () => bareOf(error)]) {
    try {
      return encode(reduced())
    } catch {
      // The next one has less.
    }
  }
  return encode(new Error('an error that cannot be described'))
}

/** Without the fields that only this process can read. */
function stripped(error: unknown): unknown {
  const fields = error as Record<string, unknown>
  for (const key of ['cause', ...Object.keys(fields)]) {
    try {
      encode(fields[key])
    } catch {
      delete fields[key]
    }
  }
  return error
}

/** Its name and its message. */
function bareOf(thrown: unknown): Error {
  const { name, message } = Object(thrown) as Partial<Error>
  return Object.assign(new Error(String(message)), { name: String(name) })
}
