/**
 * Workers that are processes: once a second they send what they have counted, which the thread that has
 * started them adds to its sheet.
 *
 * A process that dies takes what it has counted since then with it, and the requests that it had begun have
 * died. Its tasks are counted by the core of the parent, but for their CPU time. Questions about its fleets
 * reach it by the same channel.
 */
import { meters } from '../base/index.ts'
import { type CountingProcess, receiveFigures } from '../zone/internal.ts'
import { counted, zoneFigures } from './collect.ts'
import { numberOf } from './instruments.ts'
import type { Point } from './points.ts'
import { type Question, type Reply, answer, isAsker, processes, replyTo } from './questions.ts'
import { type Series, type Sheet, died } from './sheet.ts'
import { threadName } from './slow.ts'

const SEND_MS = 1000
const CONNECTIONS = numberOf('fleetConnections')

/** A series as it is sent: the number of its instrument, its attributes, and what they are now. */
type Sent = readonly [instrument: number, values: readonly (string | number)[], cells: readonly number[]]

/** What a child has sent last. */
interface Received {
  readonly instrument: number
  readonly values: readonly (string | number)[]
  readonly cells: readonly number[]
}

/** Exchange figures with the processes of this thread's zones, and with the parent of this process. */
export function countProcesses(sheet: Sheet): void {
  const children = new Map<object, Map<Series, Received>>()
  receiveFigures({
    received(child, figures) {
      if (!Array.isArray(figures)) return received(figures as Partial<Answered> | null)
      let before = children.get(child)
      if (before === undefined) children.set(child, (before = new Map()))
      for (const [instrument, values, cells] of figures as readonly Sent[]) {
        const series = sheet.numbered(instrument, values)
        if (instrument === CONNECTIONS) connected(child, String(values[0]), cells[0])
        if (series.isOfThread) series.set(cells[0])
        else series.addCells(cells, before.get(series)?.cells)
        before.set(series, { instrument, values, cells })
      }
    },
    ended(child) {
      const last = children.get(child) ?? new Map<Series, Received>()
      for (const series of last.keys()) if (series.isOfThread) series.set(0)
      for (const { instrument, values } of last.values())
        if (instrument === CONNECTIONS) connected(child, String(values[0]), 0)
      for (const { values, count } of died(last.values())) sheet.series('requests', ...values).add(count)
      children.delete(child)
    },
  })
  const { report } = meters
  if (report === undefined) return
  setInterval(() => report(figures()), SEND_MS).unref()
  meters.asked = (asked) => {
    const question = asked as Question
    const reply = (reply: Reply): void => report({ to: question.from, reply } satisfies Answered)
    void answer(question, threadName()).then(reply)
  }
}

/** A reply of a child, and the channel of who has asked. */
interface Answered {
  readonly to: string
  readonly reply: Reply
}

/** A process may have fewer permissions than its parent: it sends to who asks, and to no other channel. */
function received(answered: Partial<Answered> | null): void {
  const { to, reply } = answered ?? {}
  if (isAsker(to) && reply !== undefined) replyTo(to)(reply)
}

/** Whoever has connections is asked by this thread. */
function connected(child: CountingProcess, name: string, count: number): void {
  if (count > 0) processes.set(name, child)
  else if (processes.get(name) === child) processes.delete(name)
}

/** What is counted in sheets, and the CPU time of tasks. */
function figures(): Sent[] {
  const sheets = counted()
    .families()
    .flatMap(({ points }, number) => sentOf(number, points))
    // Who asks threads for their fleets reaches no other one of this process.
    .filter(([number, [thread]]) => number !== CONNECTIONS || thread === threadName())
  const ofZones = zoneFigures().points('taskCpu')
  return [...sheets, ...sentOf(numberOf('taskCpu'), ofZones)]
}

function sentOf(number: number, points: readonly Point[]): Sent[] {
  return points.map(({ values, cells }): Sent => [number, values, cells])
}
