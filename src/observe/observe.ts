/**
 * Opens the control socket of this process: starts the thread that answers on it, and does for that thread
 * what only the main thread can.
 *
 * Processes that are workers of zones open one of their own by a message (child.ts), named after this one.
 */
import { Worker, isMainThread } from 'node:worker_threads'
import {
  type Kind,
  flag,
  isPlainObject,
  messageOf,
  optionsOf,
  otherRuntime,
  reasonOf,
  refuser,
} from '../base/index.ts'
import { type Zone, zone as zones } from '../zone/index.ts'
import { observeProcesses, thisBridge } from '../zone/internal.ts'
import { ObserveError, sentError } from './errors.ts'
import { FLEETS, type ObservedFleet, jobOf, lookAt, retryJob } from './figures/fleets.ts'
import { versionOf } from './figures/version.ts'
import { NAME, nameOf, removeSocket, socketPath } from './sockets.ts'
import type { ControlReply, ControlRequest, ObserverStart } from './thread/control.ts'
import type { ObserverNote } from './thread/observer.ts'

/** What the main thread does when a client asks. Its parameters are what the client has sent. */
export type ControlAction = (params: Readonly<Record<string, unknown>>) => unknown

/** Options of {@link observe}. */
export interface ObserveOptions {
  /**
   * How clients name the process besides its pid: 1 to 32 letters, digits, `_` and `-`. Default: the file
   * that it runs, without its ending.
   */
  readonly name?: string
  /** Whether clients may change something: `reload` of a zone, and `actions`. Default: false. */
  readonly allowControl?: boolean
  /** By name: what clients may ask for with `allowControl`. */
  readonly actions?: Readonly<Record<string, ControlAction>>
  /**
   * Connections whose hosts, queues and dead jobs are shown: `[await connect('nats://a')]`. With
   * `allowControl` clients may run a dead job anew. Default: those of all threads when somebody looks.
   */
  readonly fleets?: readonly ObservedFleet[]
}

/** An open control socket. */
export interface Observation extends AsyncDisposable {
  /** How clients name the process besides its pid. */
  readonly name: string
  /** The socket's path, or the name of the pipe. */
  readonly path: string
  /** Close the socket. Requests that have begun are cut. */
  close(): Promise<void>
}

const wrong = refuser((facts) => new ObserveError('OBSERVE_ARGUMENT', facts))

const NAMED: Kind<string | undefined> = {
  expected: '1 to 32 letters, digits, _ and -',
  accepts: (value) => typeof value === 'string' && NAME.test(value),
  default: undefined,
}
const ACTIONS: Kind<Readonly<Record<string, ControlAction>>> = {
  expected: 'an object of functions',
  accepts: (value) =>
    isPlainObject(value) && Object.values(value).every((each) => typeof each === 'function'),
  default: {},
}

let isOpen = false

/**
 * Open the control socket of this process, so that `corespun stacks` and other commands of the same user can
 * look into it. It closes when the process ends, and does not keep the process alive.
 *
 * Call it in the main thread; `corespun serve`, `run` and `host` do so themselves.
 * @throws {ObserveError} `OBSERVE_ARGUMENT`, `OBSERVE_ONCE`, `OBSERVE_RUNTIME` outside Node,
 * `OBSERVE_FOLDER`, `OBSERVE_SOCKET`.
 *
 * @example
 * ```ts
 * import { observe } from 'corespun/observe'
 *
 * const observation = await observe({ name: 'orders' })
 * // In a terminal: npx corespun stacks orders
 * await observation.close()
 * ```
 */
export async function observe(options?: ObserveOptions): Promise<Observation> {
  const kinds = { name: NAMED, allowControl: flag(false), actions: ACTIONS, fleets: FLEETS }
  const { name, allowControl, actions, fleets } = optionsOf(options, kinds, wrong, 'observe()')
  const retry: ControlAction = fleets ? (job) => retryJob(fleets, ...jobOf(job)) : RETRY_CONNECTED
  const own = { reload: reloadZone, ...(fleets?.length === 0 ? {} : { retry }) }
  const allowed = allowControl ? { ...own, ...actions } : {}
  const observation = await open(name ?? nameOf(process.argv[1] ?? '', 'node'), undefined, allowed, fleets)
  const module = new URL('./child.js', import.meta.url).href
  observeProcesses({ module, name: observation.name, parent: process.pid })
  return observation
}

/**
 * @param parent The process whose worker this one is.
 * @throws {ObserveError}
 */
export async function open(
  name: string,
  parent: number | undefined,
  actions: Readonly<Record<string, ControlAction>>,
  fleets: readonly ObservedFleet[] | undefined,
): Promise<Observation> {
  if (!isMainThread)
    throw new ObserveError('OBSERVE_ONCE', { problem: 'observe() must be called in the main thread' })
  if (isOpen) throw new ObserveError('OBSERVE_ONCE', { problem: 'this process has a control socket already' })
  const runtime = otherRuntime()
  if (runtime !== undefined) throw new ObserveError('OBSERVE_RUNTIME', { runtime, needs: 'Node' })
  const path = socketPath(process.pid, name, parent)
  const start: ObserverStart = {
    path,
    name,
    parent,
    version: versionOf(),
    actions: Object.keys(actions),
    retries: actions['retry'] === RETRY_CONNECTED,
    fleets: fleets === undefined ? 'connected' : fleets.length > 0 ? 'given' : 'none',
  }
  // Before the thread has one: the first one of a process owns its zones, unless the main thread has.
  thisBridge()
  const thread = startThread(start)
  isOpen = true
  const remove = (): void => removeSocket(path)
  const ended = (): void => {
    isOpen = false
    observeProcesses(undefined)
    process.off('exit', remove)
    remove()
  }
  thread.once('exit', ended)
  process.once('exit', remove)
  const problem = await new Promise<string | undefined>((resolve) => {
    thread.on('error', (error) => resolve(messageOf(error)))
    thread.once('exit', () => resolve('its thread has ended'))
    thread.on('message', (message: ObserverNote | ControlRequest) => {
      if ('listening' in message) resolve(undefined)
      else if ('failed' in message) resolve(message.failed)
      else void act(message, actions, fleets).then((reply) => thread.postMessage(reply))
    })
  })
  const close = async (): Promise<void> => {
    await thread.terminate()
  }
  if (problem !== undefined) {
    await close()
    throw new ObserveError('OBSERVE_SOCKET', { path, reason: problem })
  }
  thread.unref()
  return { name, path, close, [Symbol.asyncDispose]: close }
}

/** @throws {ObserveError} `OBSERVE_SOCKET`. */
function startThread(start: ObserverStart): Worker {
  try {
    // Without the program's options: a thread cannot have all of them.
    const options = { name: 'corespun observer', workerData: start, execArgv: [] }
    return new Worker(new URL('./thread/observer.js', import.meta.url), options)
  } catch (cause) {
    throw new ObserveError('OBSERVE_SOCKET', { path: start.path, reason: reasonOf(cause) }, { cause })
  }
}

async function act(
  { id, action, params }: ControlRequest,
  actions: Readonly<Record<string, ControlAction>>,
  fleets: readonly ObservedFleet[] = [],
): Promise<ControlReply> {
  try {
    const result = await (action === undefined ? lookAt(fleets) : actions[action](params))
    // What cannot be posted cannot be JSON either.
    return { id, result: JSON.parse(JSON.stringify(result ?? null)) as unknown }
  } catch (error) {
    return { id, error: sentError(error, action ?? 'reading the fleets') }
  }
}

/** `reload {"zone":"cpu"}` */
async function reloadZone({ zone }: Readonly<Record<string, unknown>>): Promise<void> {
  const found = typeof zone === 'string' ? (zones.get(zone) as Partial<Zone>) : undefined
  if (found?.reload === undefined) throw wrong('reload: zone', 'the name of a zone with workers', zone)
  await found.reload()
}

/** Instead of the action: the thread of the socket asks those that are connected. */
const RETRY_CONNECTED: ControlAction = () => false
