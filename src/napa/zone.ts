/**
 * `napa.zone`: zones of Corespun, called as napajs calls them.
 *
 * A function travels by its text, arguments and value as JSON with a context (values.ts), so a call is one
 * task whose arguments are texts. `node` is the main thread, to all threads.
 */
import { createRequire } from 'node:module'
import { isAbsolute } from 'node:path'
import { isThisThread } from '../zone/internal.ts'
import { type AnyZone, type Result as Sent, zone as zones } from '../zone/index.ts'
import { callerFile, lifted, moduleFunctionNumber } from '../transport/internal.ts'
import { type Call, type Reply, call, evaluate, partsOf } from './call.ts'
import {
  type AnyFunction,
  TransportContext,
  type Unchecked,
  marshall,
  numberOf,
  unmarshall,
} from './values.ts'
import { loggingOf } from './log.ts'

const ENTRY = new URL('./entry.js', import.meta.url).href
const MAIN_ID = 'corespun.main'
/** Tasks of napajs share their worker's event loop. */
const TASKS_AT_ONCE = 1024

const WORKERS = 2

/** Settings of {@link create}. */
export interface ZoneSettings {
  /** Threads of the zone. Default 2. */
  workers?: number
}

/** The settings of zones that are created without any. */
export const DEFAULT_SETTINGS: ZoneSettings = { workers: WORKERS }

/** How arguments travel. Both mean the same, as in napajs. */
export const TransportOption = { AUTO: 0, MANUAL: 1 } as const

/** Options of `execute`. */
export interface CallOptions {
  /** Longest time of the call, in ms. Default 0: no limit. */
  timeout?: number
  /** Of no effect. */
  transport?: 0 | 1
}

/** The options of calls without any. */
export const DEFAULT_CALL_OPTIONS: CallOptions = { timeout: 0, transport: TransportOption.AUTO }

/** A zone: the threads of {@link create}, or `node`, the main thread. */
export interface Zone {
  /** Its name. */
  readonly id: string
  /** Runs code on every worker; its `var`s and functions become globals there. */
  broadcast(source: string): Promise<void>
  /** Runs a function on every worker. */
  broadcast(fn: AnyFunction, args?: Unchecked[]): Promise<void>
  /** `broadcast` that blocks this thread. */
  broadcastSync(source: string): void
  /** `broadcast` that blocks this thread. */
  broadcastSync(fn: AnyFunction, args?: Unchecked[]): void
  /**
   * Calls a function of a module on one worker. A module that begins with a dot is relative to the calling
   * file; without a module the name is that of a global function, with dots that of a member.
   */
  execute(module: string, name: string, args?: Unchecked[], options?: CallOptions): Promise<Result>
  /** Runs a function on one worker. What it captures is a global there. */
  execute(fn: AnyFunction, args?: Unchecked[], options?: CallOptions): Promise<Result>
  /** `{ id, type }`, with the type `node` or `napa`. */
  toJSON(): { readonly id: string; readonly type: 'node' | 'napa' }
}

/** What a call has returned. */
export class Result {
  readonly #reply: () => Reply
  #value: { readonly value: Unchecked } | undefined

  /** @internal */
  constructor(sent: Sent<Reply>) {
    this.#reply = () => sent.value
  }

  /** The value, read when it is first asked for. */
  get value(): Unchecked {
    this.#value ??= { value: unmarshall(this.payload, this.transportContext) }
    return this.#value.value
  }

  /** The value as JSON. */
  get payload(): string {
    return partsOf(this.#reply())[0]
  }

  /** What the payload refers to. */
  get transportContext(): TransportContext {
    return new TransportContext(partsOf(this.#reply())[1])
  }
}

/** Runs in workers. In the plugin's form, since TypeScript rewrites an `import()` of a variable. */
const byEntry = lifted(
  (_entry: string, _name: string, _args: readonly unknown[]): unknown => undefined,
  () => ({
    code: 'return (entry, name, args) => import(entry).then((module) => module[name](...args))',
    file: import.meta.url,
    line: 0,
    column: 0,
    usesImport: true,
    imports: [],
  }),
)

class NapaZone implements Zone {
  readonly #find: () => AnyZone

  constructor(find: () => AnyZone) {
    this.#find = find
  }

  get id(): string {
    const { id } = this.#find()
    return id === MAIN_ID ? 'node' : id
  }

  toJSON(): { readonly id: string; readonly type: 'node' | 'napa' } {
    const { id } = this
    return { id, type: id === 'node' ? 'node' : 'napa' }
  }

  async broadcast(what: string | AnyFunction, args?: Unchecked[]): Promise<void> {
    const [name, all] = broadcastOf(what, args, () => callerFile(this.broadcast))
    const zone = this.#find()
    if (isThisThread(zone)) await zone.broadcast(HERE[name], all)
    else await zone.broadcast(byEntry, [ENTRY, name, all])
  }

  broadcastSync(what: string | AnyFunction, args?: Unchecked[]): void {
    const [name, all] = broadcastOf(what, args, () => callerFile(this.broadcastSync))
    const zone = this.#find()
    if (isThisThread(zone)) zone.broadcastSync(HERE[name], all)
    else zone.broadcastSync(byEntry, [ENTRY, name, all])
  }

  async execute(what: string | AnyFunction, ...others: Unchecked[]): Promise<Result> {
    const caller = (): string => callerFile(this.execute)
    const isFunction = typeof what === 'function'
    const [args, options] = (isFunction ? others : others.slice(1)) as [Unchecked[]?, CallOptions?]
    const named = isFunction ? ([numberOf(what, caller), ''] as const) : targetOf(what, others[0], caller)
    const sent: Call = [...named, ...written(args)]
    const limits = { timeoutMs: options?.timeout || undefined }
    const zone = this.#find()
    const result = isThisThread(zone)
      ? await zone.execute(call as (...all: Call) => Reply, sent, limits)
      : await zone.execute(ENTRY, 'call', sent, limits)
    return new Result(result as Sent<Reply>)
  }
}

const HERE = { call, evaluate } as unknown as Record<'call' | 'evaluate', (...all: unknown[]) => unknown>

function broadcastOf(
  what: string | AnyFunction,
  args: Unchecked[] | undefined,
  caller: () => string,
): readonly ['call' | 'evaluate', unknown[]] {
  if (typeof what !== 'function') return ['evaluate', [String(what), caller()]]
  return ['call', [numberOf(what, caller), '', ...written(args)]]
}

function written(args: readonly Unchecked[] = []): readonly [Call[2], Call[3]] {
  const context = new TransportContext()
  return [args.map((arg) => marshall(arg, context)), context.saved]
}

/** The number of a module's function; 0 and its name for a global one. */
function targetOf(module: string, name: string | undefined, caller: () => string): readonly [number, string] {
  if (!module || module === 'global') return [0, name ?? '']
  if (module.startsWith('file:')) return [moduleFunctionNumber(module, name || 'default'), '']
  const from = isAbsolute(module) ? '' : caller()
  return [moduleFunctionNumber(resolved(module, from), name || 'default', from), '']
}

/** Found files by the caller and the name, which are parts of programs. */
const found = new Map<string, string>()
const FOUND_MAX = 10_000

/** As `require` finds it: without its ending, a folder, a package; or beside the caller, as in napajs. */
function resolved(module: string, caller: string): string {
  const key = `${caller}\0${module}`
  const known = found.get(key)
  if (known !== undefined) return known
  const require = createRequire(caller === '' || caller.startsWith('node:') ? `${process.cwd()}/` : caller)
  const beside = isAbsolute(module) || module.startsWith('.') ? [] : [`./${module}`]
  for (const name of [module, ...beside]) {
    try {
      const path = require.resolve(name)
      if (found.size >= FOUND_MAX) found.clear()
      found.set(key, isAbsolute(path) || path.startsWith('node:') ? path : `node:${path}`)
      return found.get(key) as string
    } catch {
      // Another name, or the error of whoever imports it.
    }
  }
  return module
}

/**
 * Creates a zone. As in napajs it ends when no thread but its own has a reference to it: keep one.
 * @throws {ZoneError} `ZONE_EXISTS` when the name is taken, `ZONE_ARGUMENT` for wrong settings.
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { zone } from 'corespun/napa'
 *
 * const zone1 = zone.create('zone1', { workers: 1 })
 * const result = await zone1.execute((a: number, b: number) => a + b, [1, 2])
 * assert.equal(result.value, 3)
 * ```
 */
export function create(id: string, settings: ZoneSettings = DEFAULT_SETTINGS): Zone {
  const workers = settings.workers ?? WORKERS
  const made = zones.create(id, {
    workers,
    tasksPerWorkerMax: TASKS_AT_ONCE,
    setup: ENTRY,
    weak: true,
    ...loggingOf(),
  })
  return new NapaZone(() => made)
}

/** The zone of that name; `node` is the main thread. @throws {ZoneError} `ZONE_UNKNOWN`. */
export function get(id: string): Zone {
  if (id === 'node') return node
  const known = zones.get(id)
  return new NapaZone(() => known)
}

/** The zone whose worker the calling thread is; `node` in the main thread. */
export const current: Zone = new NapaZone(() => (isThisThread(zones.main) ? zones.main : zones.current))

/** The main thread. */
export const node: Zone = new NapaZone(() => zones.main)
