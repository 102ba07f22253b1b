/**
 * A process of one side and one section: `node host.js <section>`, one slice by each order over IPC.
 *
 * A slice runs a row's loop for so many ms of the wall's clock and reports the time of one operation by the
 * wall and by the CPU of the whole process. Loops check what they compute and throw.
 */
import { serveOrders } from '../harness/orders.ts'
import { type Row, SECTION_ROWS } from './rows.ts'

/** Run a row for so long. */
export interface Order {
  readonly row: string
  readonly ms: number
}

/** Nanoseconds of one operation. */
export interface Measured {
  readonly wallNs: number
  readonly cpuNs: number
}

const rows = new Map<string, Row>()
/** Why a row cannot run here; '': it can. */
const reasons: Record<string, string> = {}
for (const [name, make] of Object.entries(await SECTION_ROWS[process.argv[2]]())) {
  try {
    const row = await make()
    await row.run(row.batch)
    rows.set(name, row)
    reasons[name] = ''
  } catch (error) {
    reasons[name] = `cannot run it: ${String(error).split('\n')[0]}`
  }
}
serveOrders(({ row, ms }: Order) => slice(rows.get(row)!, ms), reasons)

async function slice({ run, batch }: Row, ms: number): Promise<Measured> {
  const cpu = process.cpuUsage()
  const startedMs = performance.now()
  let [count, wallMs] = [0, 0]
  do {
    const made = run(batch)
    if (made !== undefined) await made
    count += batch
    wallMs = performance.now() - startedMs
  } while (wallMs < ms)
  const { user, system } = process.cpuUsage(cpu)
  return { wallNs: (wallMs * 1e6) / count, cpuNs: ((user + system) * 1000) / count }
}
