/**
 * A fleet as lines of text, and when each host was seen last.
 *
 * Whoever looks repeatedly sees hosts disappear; an overview has only those that reply.
 */
import type { FleetHostInfo, FleetOverview, JobQueueInfo } from '../../fleet/index.ts'
import { clock } from '../run/progress.ts'

/** How long a host is shown that does not reply. */
const SHOWN_MS = 60_000

/** A host, and when it has replied last. */
export interface SeenHost extends FleetHostInfo {
  /** 0: to the last question. */
  readonly unseenMs: number
}

/** What a table shows. */
export interface Shown {
  readonly hosts: readonly SeenHost[]
  readonly queues: readonly JobQueueInfo[]
}

/** Remembers hosts from look to look. */
export class Seen {
  readonly #hosts = new Map<string, { readonly info: FleetHostInfo; readonly atMs: number }>()

  /** The overview, with hosts that it does not have any more; those that have left are not missed. */
  with({ hosts, queues }: FleetOverview, nowMs: number): Shown {
    for (const info of hosts) this.#hosts.set(info.id, { info, atMs: nowMs })
    const all: SeenHost[] = []
    for (const [id, { info, atMs }] of this.#hosts) {
      const unseenMs = nowMs - atMs
      if (unseenMs > SHOWN_MS || (unseenMs > 0 && info.isLeaving)) this.#hosts.delete(id)
      else all.push({ ...info, unseenMs })
    }
    return { hosts: all.sort((a, b) => (a.zone < b.zone ? -1 : a.zone > b.zone ? 1 : 0)), queues }
  }
}

/**
 * The table, with a newline behind each line.
 * @param widthMax Characters of a line. A wider table leaves out columns, the least needed first.
 */
export function tableOf({ hosts, queues }: Shown, widthMax = Infinity): string {
  const sum = (of: (host: SeenHost) => number): number =>
    hosts.reduce((total, host) => total + (host.unseenMs === 0 ? of(host) : 0), 0)
  const calls = `${sum(({ inFlight }) => inFlight)} of ${sum(({ inFlightMax }) => inFlightMax)}`
  const jobs = `${sum(({ jobsRunning }) => jobsRunning)} of ${sum(({ jobsMax }) => jobsMax)}`
  const lines = [`hosts: ${hosts.length}, calls: ${calls}, jobs: ${jobs}`]
  if (hosts.length > 0) lines.push(...columns(HOST_HEAD, hosts.map(hostCells), widthMax))
  for (const kind of ['jobs', 'runs'] as const) {
    const some = queues.filter((queue) => queue.kind === kind)
    if (kind === 'jobs' || some.length > 0) lines.push('', `queues of ${kind}: ${some.length}`)
    if (some.length > 0) lines.push(...columns(HEADS[kind], some.map(queueCells), widthMax))
  }
  return `${lines.join('\n')}\n`
}

const HOST_HEAD = ['ZONE', 'VERSION', 'MACHINE', 'PID', 'HOST', 'CALLS', 'JOBS', 'UP', 'STATE']
const HEADS = {
  jobs: ['ZONE', 'WAITING', 'TAKEN', 'DEAD', 'WAITS'],
  runs: ['RUN', 'WAITING', 'TAKEN', 'DEAD', 'WAITS'],
}
/** Between two columns. */
const GAP = '  '
/** Left out of a narrow table in this order. */
const LEAST_NEEDED = ['PID', 'UP', 'HOST', 'VERSION', 'MACHINE', 'WAITS', 'TAKEN', 'CALLS']

function hostCells(host: SeenHost): string[] {
  const { zone, version, machine, pid, id, inFlight, inFlightMax, jobsRunning, jobsMax, upMs } = host
  const state = host.isLeaving ? 'leaving' : 'ready'
  return [
    zone,
    version,
    machine,
    String(pid),
    id.slice(0, 8),
    `${inFlight}/${inFlightMax}`,
    jobsMax === 0 ? '-' : `${jobsRunning}/${jobsMax}`,
    clock(upMs / 1000),
    host.unseenMs === 0 ? state : `silent for ${clock(host.unseenMs / 1000)}`,
  ]
}

function queueCells({ zone, waiting, taken, dead, waitedMs }: JobQueueInfo): string[] {
  return [zone, String(waiting), String(taken), String(dead), waiting === 0 ? '-' : clock(waitedMs / 1000)]
}

/** Lines of a table, a column as wide as its widest cell. */
export function columns(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  widthMax: number,
): string[] {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((cells) => cells[column].length)))
  const kept = new Set(head.keys())
  const width = (): number =>
    [...kept].reduce((sum, column) => sum + widths[column], GAP.length * (kept.size - 1))
  for (const name of LEAST_NEEDED) if (width() > widthMax) kept.delete(head.indexOf(name))
  return all.map((cells) =>
    [...kept]
      .map((column) => cells[column].padEnd(widths[column]))
      .join(GAP)
      .trimEnd(),
  )
}
