/**
 * Workers that are processes: once a second they send what they have counted, which the thread that has
 * started them adds to its sheet.
 *
 * A process that dies takes what it has counted since then with it, and the requests that it had begun have
 * died. Its tasks are counted by the core of the parent, but for their CPU time.
 */
import { meters } from '../base/index.ts'
import { receiveFigures } from '../zone/internal.ts'
import { counted, zoneFigures } from './collect.ts'
import { numberOf } from './instruments.ts'
import type { Point } from './points.ts'
import { type Series, type Sheet, died } from './sheet.ts'

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
      let before = children.get(child)
      if (before === undefined) children.set(child, (before = new Map()))
      for (const [instrument, values, cells] of figures as readonly Sent[]) {
        const series = sheet.numbered(instrument, values)
        if (series.isOfThread) series.set(cells[0])
        else series.addCells(cells, before.get(series)?.cells)
        before.set(series, { instrument, values, cells })
      }
    },
    ended(child) {
      const last = children.get(child) ?? new Map<Series, Received>()
      for (const series of last.keys()) if (series.isOfThread) series.set(0)
      for (const { values, count } of died(last.values())) sheet.series('requests', ...values).add(count)
      children.delete(child)
    },
  })
  const { report } = meters
  if (report !== undefined) setInterval(() => report(figures()), SEND_MS).unref()
}

/** What is counted in sheets, and the CPU time of tasks. */
function figures(): Sent[] {
  // Who asks threads for their fleets does not reach this process.
  const sheets = counted()
    .families()
    .flatMap(({ points }, number) => (number === CONNECTIONS ? [] : sentOf(number, points)))
  const ofZones = zoneFigures().points('taskCpu')
  return [...sheets, ...sentOf(numberOf('taskCpu'), ofZones)]
}

function sentOf(number: number, points: readonly Point[]): Sent[] {
  return points.map(({ values, cells }): Sent => [number, values, cells])
}
