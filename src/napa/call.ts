/**
 * What a call of napajs is in the thread that runs it: texts become arguments, the value becomes a text.
 *
 * Modules of this folder that send calls do not import what only receives them (entry.ts).
 */
import { hasMember, isObject, threads } from '../base/index.ts'
import { FunctionError, functionByNumber } from '../transport/internal.ts'
import { type AnyFunction, type Saved, TransportContext, marshall, unmarshall } from './values.ts'

/** A value as a text; with what it refers to, where it refers to something. */
export type Reply = string | readonly [payload: string, saved: readonly Saved[]]
/** The number of a function, or 0 and the name of a global one; and its arguments as texts. */
export type Call = readonly [
  number: number,
  name: string,
  payloads: readonly string[],
  saved: readonly Saved[],
]

/** Calls a function. @throws {FunctionError} if this thread does not have it. */
export function call(...[number, name, payloads, saved]: Call): Reply | Promise<Reply> {
  const fn = number === 0 ? globalFunction(name) : functionByNumber(number)
  const run = (callee: Function): Reply | Promise<Reply> => {
    const context = new TransportContext(saved)
    const value: unknown = callee(...payloads.map((payload) => unmarshall(payload, context)))
    return isThenable(value) ? value.then(replied) : replied(value)
  }
  return fn instanceof Promise ? fn.then(run) : run(fn)
}

/** Runs code as an indirect eval does: its `var`s and functions become globals. `from` is its file. */
export function evaluate(code: string, from: string): void {
  if (!threads().isMainThread && !Object.hasOwn(globalThis, 'require')) {
    const { createRequire } = process.getBuiltinModule('node:module')
    const value = createRequire(from === '' ? `${process.cwd()}/` : from)
    Object.defineProperty(globalThis, 'require', { value, configurable: true, writable: true })
  }
  // oxlint-disable-next-line no-eval -- the meaning of broadcasts in napajs: `let` is that of the code alone
  const run = globalThis.eval
  run(code)
}

/** The text of a reply and what that refers to. */
export function partsOf(reply: Reply): readonly [payload: string, saved: readonly Saved[]] {
  return typeof reply === 'string' ? [reply, []] : reply
}

function replied(value: unknown): Reply {
  const context = new TransportContext()
  const payload = marshall(value, context)
  return context.saved.length === 0 ? payload : [payload, context.saved]
}

function isThenable(value: unknown): value is Promise<unknown> {
  return isObject(value) && typeof (value as Partial<Promise<unknown>>).then === 'function'
}

/** `foo`, or `api.foo`, of this thread's globals. */
function globalFunction(name: string): AnyFunction {
  let [owner, value]: [unknown, unknown] = [undefined, globalThis]
  for (const part of name.split('.')) {
    owner = value
    value = isObject(owner) && hasMember(owner, part) ? (owner as Record<string, unknown>)[part] : undefined
  }
  if (value === undefined)
    throw new FunctionError('FUNCTION_EXPORT_MISSING', { module: 'globalThis', export: name, exports: [] })
  if (typeof value !== 'function')
    throw new FunctionError('FUNCTION_EXPORT_KIND', {
      module: 'globalThis',
      export: name,
      received: typeof value,
    })
  return value.bind(owner) as AnyFunction
}
