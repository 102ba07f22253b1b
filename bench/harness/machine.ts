/**
 * The machine block, without which a figure means nothing.
 *
 * Only what the system reports; what it hides (the governor inside a virtual machine) is called unknown.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import os from 'node:os'
import { PACKAGE_FOLDER } from './paths.ts'

/** Where and with what a record was made. */
export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryGb: number
  readonly kernel: string
  /** The congestion control of TCP; older records do not name it. */
  readonly congestion?: string
  readonly virtual: string
  readonly governor: string
  readonly node: string
  readonly v8: string
  readonly uv: string
  readonly corespun: string
  /** Commit of the checkout; '+' when files differ from it. */
  readonly commit: string
  /** Competitors and harness with their versions. */
  readonly packages: Readonly<Record<string, string>>
  /** Cores that were in use during the seconds before the run began, 0 to `cores`. */
  readonly loadBefore: number
}

/** The model of the processor. */
export function cpuName(): string {
  return os.cpus()[0]?.model.trim() ?? 'unknown'
}

export function readMachine(): Machine {
  return {
    cpu: cpuName(),
    cores: os.availableParallelism(),
    memoryGb: Math.round(os.totalmem() / 2 ** 30),
    kernel: `${os.type()} ${os.release()} ${os.arch()}`,
    congestion: contents('/proc/sys/net/ipv4/tcp_congestion_control').trim() || 'unknown',
    virtual: / hypervisor /.test(contents('/proc/cpuinfo')) ? 'virtual machine' : 'not reported as virtual',
    governor: contents('/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor').trim() || 'unknown',
    node: process.version,
    v8: process.versions.v8,
    uv: process.versions.uv,
    corespun: versionIn(`${PACKAGE_FOLDER}/package.json`),
    commit: commit(),
    packages: competitors(),
    loadBefore: Math.round(coresInUse() * 100) / 100,
  }
}

/** Long enough for other programs that work in bursts to be seen. */
const LOOK_MS = 3000

/**
 * How many cores are in use now. The load average would do, but it counts a table that ended a minute ago,
 * so no two tables could run one after the other.
 */
function coresInUse(): number {
  const busyMs = (): number =>
    os.cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0)
  const [startedMs, before] = [performance.now(), busyMs()]
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_MS)
  return (busyMs() - before) / (performance.now() - startedMs)
}

/** The block as lines of text. */
export function machineLines(machine: Machine): string[] {
  const tcp = machine.congestion === undefined ? '' : ` · TCP ${machine.congestion}`
  const packages = Object.entries(machine.packages).map(([name, version]) => `${name} ${version}`)
  return [
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb} GB, ${machine.virtual}, ` +
      `governor ${machine.governor}`,
    `${machine.kernel}${tcp} · Node ${machine.node} (V8 ${machine.v8}, libuv ${machine.uv}) · cores in ` +
      `use before ${machine.loadBefore}`,
    `corespun ${machine.corespun} at ${machine.commit} · ${packages.join(', ')}`,
  ]
}

/** Whether others were at work when the run began: its figures are then no measurement of anything. */
export function isBusy({ loadBefore, cores }: Machine): boolean {
  return loadBefore > cores * 0.5
}

function competitors(): Record<string, string> {
  const manifest = JSON.parse(contents(`${PACKAGE_FOLDER}/bench/package.json`) || '{}') as {
    dependencies?: Record<string, string>
  }
  return manifest.dependencies ?? {}
}

function versionIn(path: string): string {
  const manifest = JSON.parse(contents(path) || '{}') as { version?: string }
  return manifest.version ?? 'unknown'
}

function commit(): string {
  const head = git('rev-parse', '--short=10', 'HEAD')
  if (head === '') return 'unknown'
  return git('status', '--porcelain', '--untracked-files=no') === '' ? head : `${head}+`
}

function git(...words: string[]): string {
  try {
    return execFileSync('git', words, {
      cwd: PACKAGE_FOLDER,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } catch {
    return '' // not a checkout, or no git: the block contains unknown
  }
}

function contents(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return '' // not every system has these files
  }
}
