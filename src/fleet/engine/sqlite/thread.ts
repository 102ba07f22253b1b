/**
 * The thread that has the file of an engine: it commits what has arrived, and then what arrived meanwhile.
 *
 * So commits are grouped without a timer, and the thread that asks never waits for the disk. What other
 * processes commit is noticed by looking at the version of the file, a word of shared memory, at least every
 * 25 ms, as long as there is somebody here who takes items or watches values.
 */
/* c8 ignore start: another Node runs it where this one lacks SQLite; the counts of two do not add up */
import type { DatabaseSync } from 'node:sqlite'
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { failureOf } from './failures.ts'
import { Keeper } from './keeper.ts'
import { openFile } from './open.ts'
import type { Outcome, Request } from './requests.ts'
import type { Refusal } from './tables.ts'

/** The shortest pause between two looks, and the longest: each is a part of the time without an outcome. */
const LOOK_MS = { min: 1, max: 25 }
const LOOK_PART = 1 / 8

/** Most requests in one transaction: others wait for it. */
const GROUP_MAX = 4096

/** What the thread sends: that the file is open, or why not, and then outcomes. */
export type FromThread = Outcome | { readonly opened: Refusal | true }
/** What it receives. */
export type ToThread = readonly Request[] | 'close'

const nowMs = (): number => Date.now()

/** Node 22 and 24 warn of SQLite once, in each thread. */
function databaseClass(): typeof DatabaseSync {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule('node:sqlite').DatabaseSync
  } finally {
    process.emitWarning = emitWarning
  }
}

function start(port: MessagePort, file: string): void {
  let keeper: Keeper
  try {
    keeper = new Keeper(openFile(databaseClass(), file, nowMs), file, nowMs)
  } catch (error) {
    const opened = failureOf(error, file, `opening ${file}`)
    port.postMessage({ opened } satisfies FromThread)
    return
  }
  let looking: NodeJS.Timeout | undefined
  let outcomeMs = 0
  let isOver = false
  const end = (): void => {
    if (isOver) return
    isOver = true
    clearTimeout(looking)
    port.close()
    keeper.close()
  }
  const run = (requests: readonly Request[]): void => {
    const outcome = keeper.run(requests)
    if (!isEmpty(outcome)) port.postMessage(outcome satisfies FromThread)
    if (outcome.fatal !== undefined) return end()
    clearTimeout(looking)
    const atMs = performance.now()
    if (!isEmpty(outcome)) outcomeMs = atMs
    const pauseMs = Math.max(LOOK_MS.min, Math.min(LOOK_MS.max, (atMs - outcomeMs) * LOOK_PART))
    if (keeper.isWatching) looking = setTimeout(look, pauseMs)
  }
  const look = (): void => run([])
  const runAll = (requests: readonly Request[]): void => {
    for (let at = 0; at < requests.length && !isOver; at += GROUP_MAX) run(requests.slice(at, at + GROUP_MAX))
  }
  port.on('message', (first: ToThread) => {
    const requests: Request[] = []
    for (let message: ToThread | undefined = first; message !== undefined;) {
      if (message === 'close') {
        runAll(requests)
        return end()
      }
      for (const request of message) requests.push(request)
      message = receiveMessageOnPort(port)?.message as ToThread | undefined
    }
    runAll(requests)
  })
  port.postMessage({ opened: true } satisfies FromThread)
}

const isEmpty = ({ entries, leases, replies, over, fatal }: Outcome): boolean =>
  entries.length + leases.length + replies.length + over.length === 0 && fatal === undefined

start(parentPort!, (workerData as { file: string }).file)
