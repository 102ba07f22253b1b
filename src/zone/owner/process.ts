/**
 * A worker that is a process, as its owner sees it: what a `Worker` of Node is for one that is a thread.
 *
 * It has ended when the system has reported its end and the core has returned its sockets, in whichever
 * order: then no task is with it. Node's channel carries what a worker posts; tasks travel by the core's
 * sockets.
 */
import type { ChildProcess } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { valueOf } from '../../bridge/index.ts'
import { native } from '../../native/index.ts'
import { MAIN_MODULE } from '../../transport/internal.ts'
import type { ZoneSettings } from '../ground/settings.ts'
import type { SpareMessage } from './spare.ts'
import { compileCacheFolder } from './main-file.ts'
import {
  INHERITED,
  type ProcessCounts,
  type ProcessError,
  type ProcessAsked,
  type ProcessCount,
  type ProcessObserved,
  type ProcessSlot,
  type ProcessStart,
  type SpareStart,
  type WorkerStart,
  type WorkerThread,
  inheritedOptions,
} from './thread.ts'

/** A process has all options of its parent about modules, and what its parent may do. */
const OPTIONS = new RegExp(`${INHERITED.source}|^--permission|^--allow-`)

const MEBI = 1024 * 1024

/** By the numbers of their links: what is called when the core has returned the sockets. */
const linked = new Map<number, () => void>()

let observed: ProcessObserved | undefined
const running = new Set<WorkerProcess>()

/** Processes that run, and those that start from now on, are looked into; `undefined`: no more of them. */
export function observeProcesses(next: ProcessObserved | undefined): void {
  observed = next
  for (const each of running) each.observe()
}

/** The core has returned the sockets of a process. */
export function linkEnded(link: number): void {
  linked.get(link)?.()
}

/** A process that counts. */
export interface CountingProcess {
  ask(question: unknown): void
}

/** Who receives the figures of processes that are workers, and their replies. */
export interface ProcessFigures {
  received(child: CountingProcess, figures: unknown): void
  ended(child: CountingProcess): void
}

let counting: ProcessFigures | undefined

/** Have all processes of this thread, later ones too, send what they count. */
export function receiveFigures(receiver: ProcessFigures): void {
  counting = receiver
  for (const each of running) each.count()
}

/** Start a process with the options that `settings` has for it. @throws what Node refuses. */
export function startProcess(data: WorkerStart | SpareStart, settings: ZoneSettings): WorkerThread {
  return new WorkerProcess(data, settings)
}

class WorkerProcess extends EventEmitter implements WorkerThread, CountingProcess {
  readonly #process: ChildProcess
  #isLinked = true
  #exit: readonly [code: number | null, signal: string | null] | undefined

  constructor(data: WorkerStart | SpareStart, settings: ZoneSettings) {
    super()
    const [link, tasks, texts] = new Uint32Array(native.linkOpen().buffer) as unknown as [
      number,
      number,
      number,
    ]
    try {
      this.#process = spawned(settings, tasks, texts)
      const { pid } = this.#process
      // Otherwise the process reports the error.
      if (pid !== undefined) native.linkStart(link, pid)
      else this.#isLinked = false
    } finally {
      native.linkDrop(link)
    }
    if (this.#isLinked) linked.set(link, () => this.#unlinked(link))
    this.#process.on('error', (error) => {
      this.emit('error', error)
      // One that was never started does not exit.
      if (this.#process.pid === undefined) this.#ended([1, null])
    })
    this.#process.once('exit', (code, signal) => {
      native.linkReaped(link)
      this.#ended([code, signal])
    })
    this.#process.on('message', (message) => this.#received(message))
    running.add(this)
    this.observe()
    this.#begin(data)
    if (counting !== undefined) this.count()
  }

  count(): void {
    this.#post({ corespunCount: native.countedBy()! } satisfies ProcessCount)
  }

  ask(corespunAsked: unknown): void {
    this.#post({ corespunAsked } satisfies ProcessAsked)
  }

  /** Let those who look into this process look into that one. */
  observe(): void {
    if (observed !== undefined) this.#post({ corespunObserved: observed })
  }

  terminate(): void {
    this.#process.kill('SIGKILL')
  }

  unref(): void {
    this.#process.unref()
    this.#process.channel?.unref()
  }

  #begin(data: WorkerStart | SpareStart): void {
    const environment = [[MAIN_MODULE, process.argv[1] ?? '']] as const
    const complete = <Data extends WorkerStart>(start: Data): Data => ({ environment, ...start })
    if (!('slots' in data)) return this.#post({ corespun: { now: complete(data) } } satisfies ProcessStart)
    const { slots, prepares } = data
    this.#post({ corespun: { prepares: prepares && complete(prepares) } } satisfies ProcessStart)
    slots.once('message', (given: SpareMessage) => {
      slots.close()
      this.#post({ corespunSlot: given && complete(given) } satisfies ProcessSlot)
    })
    slots.unref()
  }

  #post(message: object): void {
    // One that has ended receives nothing, and its end is reported.
    this.#process.send(message, () => {})
  }

  #received(message: unknown): void {
    const { corespunThrown: thrown, corespunFigures: figures } = Object(message) as Partial<
      ProcessError & ProcessCounts
    >
    if (figures !== undefined) return counting?.received(this, figures)
    if (thrown === undefined) this.emit('message', message)
    else this.emit('error', valueOf(thrown, 0, thrown.length))
  }

  #unlinked(link: number): void {
    linked.delete(link)
    this.#isLinked = false
    // A task has closed its socket: nothing reaches it any more.
    if (this.#exit === undefined) this.terminate()
    else this.#ended(this.#exit)
  }

  #ended(exit: readonly [code: number | null, signal: string | null]): void {
    this.#exit = exit
    if (running.delete(this)) counting?.ended(this)
    if (!this.#isLinked) this.emit('exit', ...exit)
  }
}

function spawned(settings: ZoneSettings, tasks: number, texts: number): ChildProcess {
  const { spawn } = process.getBuiltinModule('node:child_process')
  const { execArgv, env, heapMbMax, memoryMbMax } = settings
  const options = execArgv ?? inheritedOptions(OPTIONS)
  const heap = heapMbMax === null ? [] : [`--max-old-space-size=${heapMbMax}`]
  const file = process
    .getBuiltinModule('node:url')
    .fileURLToPath(new URL('../worker/process.js', import.meta.url))
  const own = [String(process.pid), String((memoryMbMax ?? 0) * MEBI), compileCacheFolder() ?? '']
  return spawn(process.execPath, [...options, ...heap, file, ...own], {
    env: env ?? process.env,
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'inherit', 'ipc', tasks, texts],
    windowsHide: true,
  })
}
