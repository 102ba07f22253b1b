/**
 * What a run asks for that no seed decides: sockets, files, threads, timers of Node.
 *
 * Looked for in the first run and in each that fails, since it slows promises down.
 */
import { withStackLimit } from '../base/index.ts'
import { FRAMES_MAX, callerIn } from './frames.ts'
import { current } from './play.ts'

/** What Node makes for promises, and for output that a test prints. */
const HARMLESS =
  /^(?:PROMISE|TickObject|Microtask|AsyncResource|WRITEWRAP|TTYWRAP|PIPEWRAP|SIGNALWRAP|.*ALS.*)$/

export interface Real {
  /** As Node calls it: `TCPWRAP`, `FSREQPROMISE`, `Timeout`. */
  readonly resource: string
  readonly where: string
}

/** Call `run` and return what it resolves with, and the first such resource that its tasks have made. */
export async function watchReal<Value>(run: () => Promise<Value>): Promise<[Value, Real | undefined]> {
  const { AsyncResource, createHook } = process.getBuiltinModule('node:async_hooks')
  let real: Real | undefined
  const hook = createHook({
    init: (_id, resource, _trigger, of) => {
      // Those that JavaScript makes, as streams do, keep a context and wait for nothing.
      if (real !== undefined || HARMLESS.test(resource) || of instanceof AsyncResource) return
      if (current.getStore()?.isDead !== false) return
      const [file, line] = callerIn(withStackLimit(FRAMES_MAX, () => new Error('here')))
      real = { resource, where: file && `${file}:${line}` }
    },
  })
  hook.enable()
  try {
    return [await run(), real]
  } finally {
    hook.disable()
  }
}
