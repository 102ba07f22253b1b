/**
 * Workers that are processes: once a second they send what they have counted, which the thread that has
 * started them adds to its sheet.
 *
 * A process that dies takes what it has counted since then with it. Its tasks are counted by the core of the
 * parent, but for their CPU time.
 */
import { meters } from '../base/index.ts'
import { receiveFigures } from '../zone/internal.ts'
import { collect } from './collect.ts'
import { LISTED, type InstrumentKey, numberOf } from './instruments.ts'
import type { Series, Sheet } from './sheet.ts'

const SEND_MS = 1000

/** A series as it is sent: the number of its instrument, its attributes, and what they are now. */
type Sent = readonly [instrument: number, values: readonly (string | number)[], cells: Float64Array]

/** Exchange figures with the processes of this thread's zones, and with the parent of this process. */
export function countProcesses(sheet: Sheet): void {
  const children = new Map<object, Map<Series, Float64Array>>()
  receiveFigures({
    received(child, figures) {
      let before = children.get(child)
      if (before === undefined) children.set(child, (before = new Map()))
      for (const [instrument, values, cells] of figures as readonly Sent[]) {
        const series = sheet.numbered(instrument, values)
        if (LISTED[instrument].kind === 'gauge') series.set(cells[0])
        else series.addCells(cells, before.get(series))
        before.set(series, cells)
      }
    },
    ended(child) {
      for (const series of children.get(child)?.keys() ?? []) if (series.isGauge) series.set(0)
      children.delete(child)
    },
  })
  const { report } = meters
  if (report !== undefined) setInterval(() => report(figures()), SEND_MS).unref()
}

/** What is counted in sheets, and the CPU time of tasks. */
function figures(): Sent[] {
  const first: InstrumentKey = 'tasks'
  const isSent = (number: number): boolean => number < numberOf(first) || number === numberOf('taskCpu')
  return collect().flatMap(({ points }, number) =>
    isSent(number) ? points.map(({ values, cells }): Sent => [number, values, cells]) : [],
  )
}
