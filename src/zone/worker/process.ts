/**
 * The main module of a zone's worker that is a process.
 *
 * Started with a channel of Node's for start data and the messages of a worker, and two sockets for the core:
 * tasks, and the numbers of texts, which are those of the parent. In this process the zone is one of its own
 * with this worker alone, whose tasks are those that arrive. Signals of a terminal or a service manager to
 * the whole group are the parent's business: its end is this process's.
 */
import module from 'node:module'
import { meters } from '../../base/index.ts'
import { native } from '../../native/index.ts'
import type { SpareMessage } from '../owner/spare.ts'
import type {
  ProcessAsked,
  ProcessCount,
  ProcessCounts,
  ProcessObserved,
  ProcessSlot,
  ProcessStart,
} from '../owner/thread.ts'
import type { Host } from './worker.ts'

/** The descriptors of the two sockets, behind those of Node: standard streams and its channel. */
const TASKS = 4
const TEXTS = 5

const [parent = '', memoryBytes = '', cacheFolder = ''] = process.argv.splice(2)
native.linkBegin(TEXTS, Number(parent), Number(memoryBytes))
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
process.once('disconnect', () => process.exit(0))
const received: unknown[] = []
let receive: ((message: unknown) => void) | undefined
process.on('message', (message) => {
  if (receive === undefined) received.push(message)
  else receive(message)
})
const { enableCompileCache }: Partial<typeof module> = module
if (cacheFolder !== '') enableCompileCache?.(cacheFolder)
void import('./worker.ts').then(start)

function count(module: string): void {
  meters.report = (corespunFigures) => process.send?.({ corespunFigures } satisfies ProcessCounts, () => {})
  native.countBy(module)
}

async function start({ begin }: typeof import('./worker.ts')): Promise<void> {
  const { processHost } = await import('./process-host.ts')
  let slot: ((given: SpareMessage) => void) | undefined
  const host: Host = processHost(TASKS, (received) => (slot = received))
  const handle = (message: unknown): void => {
    const { corespun } = message as Partial<ProcessStart>
    if (corespun !== undefined) begin(corespun.now ?? { prepares: corespun.prepares }, host)
    const { corespunSlot } = message as Partial<ProcessSlot>
    if (corespunSlot !== undefined) slot?.(corespunSlot)
    const { corespunCount } = message as Partial<ProcessCount>
    if (corespunCount !== undefined) count(corespunCount)
    const { corespunAsked } = message as Partial<ProcessAsked>
    if (corespunAsked !== undefined) meters.asked?.(corespunAsked)
  }
  let observing: Promise<void> | undefined
  receive = (message) => {
    const { corespunObserved: observed } = message as { corespunObserved?: ProcessObserved }
    if (observed !== undefined) observing = observe(observed)
    // The first task may never return: who looks into the process comes before it.
    else if (observing !== undefined) void observing.then(() => handle(message))
    else handle(message)
  }
  for (const message of received.splice(0)) receive(message)
}

/** Loaded by its URL: it is above this folder, and few processes need it. */
async function observe(observed: ProcessObserved): Promise<void> {
  const { begin } = (await import(observed.module)) as { begin(observed: ProcessObserved): Promise<void> }
  await begin(observed)
}
