/**
 * `corespun host`: a module offered to a fleet, on every core of this machine, until a signal asks to stop.
 *
 * `host()` of corespun/fleet does the work, in a zone made for it; what is left here is what a command adds.
 */
import type { Fleet, FleetHost } from '../../fleet/index.ts'
import type { ControlAction } from '../../observe/index.ts'
import type { Zone } from '../../zone/index.ts'
import type { CommandContext, StopSignal } from '../run/run.ts'
import { loadReason } from '../../base/index.ts'
import { CliError, ExitCode } from '../errors.ts'
import { EventLines, printDeadJobs, printWorkers } from '../events.ts'
import { loadedWithNotice } from '../loading.ts'
import { resolveModule } from '../resolve.ts'
import { observeSoon } from '../soon.ts'
import { firstSignal } from '../signals.ts'
import { withoutCredentials } from '../fleet/connection.ts'
import type { HostWords } from './host-arguments.ts'
import { untilThere } from './waiting.ts'

/**
 * Host until a signal asks to stop, or the connection ends for good. Servers that are not there yet are
 * waited for.
 * @returns The exit code: 0 when every call that had begun was finished.
 * @throws {CliError} When there is no such module, or it does not load: jobs would fail here for good.
 * @throws {FleetError} What a server refuses, and what TLS does.
 */
export async function host(words: HostWords, context: CommandContext): Promise<number> {
  const url = resolveModule(words.module, context.folder)
  const { name, workers, inFlightMax, jobsMax, leaseMs, version, replicas } = words
  const { servers, options } = words.connection
  const [{ connect, host: begin }, { zone }, { installTypeScript }] = await Promise.all([
    import('../../fleet/index.ts'),
    import('../../zone/index.ts'),
    import('../../zone/internal.ts'),
  ])
  // Before the workers start: those of Nodes that strip no types take the hooks over from this thread.
  installTypeScript()
  const stop = firstSignal(context)
  const tasksPerWorkerMax = Math.max(1, Math.ceil(jobsMax / workers))
  const cpu = zone.create(`corespun host ${name}`, { workers, tasksPerWorkerMax })
  const lines = new EventLines((line) => void context.stderr.write(line))
  const ends = [printWorkers(lines, cpu.id), printDeadJobs(lines)]
  let fleet: Fleet | undefined
  const connected = (): Fleet => {
    if (fleet === undefined) throw new Error('the host is not connected to its servers yet')
    return fleet
  }
  const retry: ControlAction = ({ key, zone = name }) =>
    connected()
      .jobs(zone as string)
      .again(key as string)
  const observed = {
    overview: async () => connected().overview(),
    jobs: (zone: string) => connected().jobs(zone),
  }
  const actions = { drain: stop.now, retry }
  const unobserve = observeSoon({ ...words, actions, fleets: [observed] }, context)
  const open = async (): Promise<readonly [Fleet, FleetHost]> => {
    await fleet?.close()
    fleet = await connect(servers, { name: `corespun host ${name}`, replicas, ...options })
    const own = { zone: cpu, inFlightMax, jobsMax, ...(leaseMs !== undefined && { leaseMs }), version }
    return [fleet, await begin(fleet, { name, module: url, ...own })]
  }
  try {
    try {
      const print = (line: string): void => void context.stderr.write(`corespun: ${line}\n`)
      const loading = loadedWithNotice(words.module, loaded(cpu, words.module, url), print)
      await Promise.race([loading, stop.first])
      const waits = (why: string): void => print(`${why}; waiting for it`)
      const hosting = await untilThere(open, stop.first, waits)
      return hosting === undefined ? ExitCode.ok : await untilStopped(...hosting, words, stop.first, context)
    } finally {
      await fleet?.close()
    }
  } finally {
    unobserve()
    stop.ignore()
    ends.forEach((end) => end())
    await cpu.close({ timeoutMs: 0 })
  }
}

/** By a call of an export that no module has: a worker that does not find it has loaded the module. */
async function loaded(cpu: Zone, module: string, url: string): Promise<void> {
  try {
    await cpu.execute(url, 'corespun: no export')
  } catch (cause) {
    const { code, cause: thrown = cause } = cause as { code?: string; cause?: unknown }
    if (code === 'FUNCTION_EXPORT_MISSING') return
    const reason = loadReason(thrown, url)
    throw new CliError('CLI_MODULE_FAILED', { module, reason }, { cause })
  }
}

async function untilStopped(
  fleet: Fleet,
  running: FleetHost,
  { name, workers, connection, drainMs }: HostWords,
  stop: Promise<StopSignal>,
  context: CommandContext,
): Promise<number> {
  const threads = workers === 1 ? '1 worker' : `${workers} workers`
  const servers = withoutCredentials(connection.servers)
  context.stdout.write(`hosting ${name} ${running.version} with ${threads} on ${servers}\n`)
  const ended = await Promise.race([stop, fleet.ended])
  const isSignal = ended === 'SIGINT' || ended === 'SIGTERM'
  if (!isSignal) context.stderr.write(`corespun: the connection has ended: ${ended}\n`)
  const isIdle = running.inFlight + running.jobsRunning === 0
  const isWhole = isIdle || (await inTime(running.close({ timeoutMs: drainMs }), drainMs))
  return isSignal && isWhole ? ExitCode.ok : ExitCode.terminated
}

/** Whether it has ended before its time was over. */
async function inTime(closed: Promise<void>, mostMs: number): Promise<boolean> {
  const begunMs = performance.now()
  await closed
  return performance.now() - begunMs < mostMs
}
