/**
 * Reads what strace has written: for each operation, how often which system call was made, and how many bytes
 * it passed.
 *
 * `-f -o file`: a line begins with the thread; a call that another thread's line interrupts is two lines,
 * `<unfinished ...>` and `<... name resumed>`.
 */
import { MARK } from './marks.ts'

/** Calls by name; `futex wait` and `futex wake`; `bytes` is what those in BYTES returned. */
export type Traced = Readonly<Record<string, number>>

/** What is traced: waits and wakes, files and sockets. Memory is V8's and the allocator's. */
const BYTES = [
  'read',
  'write',
  'readv',
  'writev',
  'recvfrom',
  'recvmsg',
  'sendto',
  'sendmsg',
  'pread64',
  'pwrite64',
]
export const CALLS = [
  ...BYTES,
  ...['access', 'faccessat', 'faccessat2', 'futex', 'epoll_wait', 'epoll_pwait', 'epoll_pwait2', 'epoll_ctl'],
  ...[
    'poll',
    'ppoll',
    'fsync',
    'fdatasync',
    'ftruncate',
    'openat',
    'close',
    'fcntl',
    'clone',
    'clone3',
    'accept4',
  ],
]

/** The median over operations of each figure, without those that are 0. */
export function readTrace(lines: Iterable<string>): Traced {
  const operations: Map<string, number>[] = []
  /** How often each thread is `off`. */
  const off = new Map<string, number>()
  for (const line of lines) {
    const [, thread, isResumed, name] = /^(\d+) +(<\.\.\. )?(\w+)[( ]/.exec(line) ?? []
    if (thread === undefined || name === undefined) continue
    const at = line.indexOf(MARK)
    if (at >= 0) {
      const word = line.slice(at + MARK.length, line.indexOf('"', at))
      if (word === 'op') operations.push(new Map())
      else off.set(thread, (off.get(thread) ?? 0) + (word === 'off' ? 1 : -1))
      continue
    }
    const operation = operations.at(-1)
    if (operation === undefined || (off.get(thread) ?? 0) > 0) continue
    const add = (key: string, amount: number): unknown =>
      operation.set(key, (operation.get(key) ?? 0) + amount)
    const returned = Number(/ = (\d+)(?:$| )/.exec(line)?.[1] ?? 0)
    if (WAITS.test(name)) {
      if (line.includes(' = ') && !isExpired(line)) add(name, 1)
    } else if (isResumed === undefined) add(nameOf(name, line), 1)
    if (BYTES.includes(name) && returned > 0 && !isWakeUp(name, returned)) add('bytes', returned)
  }
  operations.pop() // What follows the last one.
  const names = [...new Set(operations.flatMap((operation) => [...operation.keys()]))].sort()
  const medians = names.map(
    (name) => [name, median(operations.map((operation) => operation.get(name) ?? 0))] as const,
  )
  return Object.fromEntries(medians.filter(([, value]) => value !== 0))
}

/**
 * Waits count when they return. One that its timeout has ended is of a timer, which a slow machine meets more
 * often: `[], 1024, 116, NULL, 8) = 0`. One with a timeout of 0 only looks, and counts.
 */
const WAITS = /^epoll_p?wait2?$/
function isExpired(line: string): boolean {
  return line.endsWith(' = 0') && !/\], \d+, (?:0|\{tv_sec=0, tv_nsec=0\})[,)]/.test(line)
}

/** The counter of an eventfd, by which libuv and the core wake a thread. */
function isWakeUp(name: string, bytes: number): boolean {
  return bytes === 8 && (name === 'read' || name === 'write')
}

function nameOf(name: string, line: string): string {
  if (name !== 'futex') return name
  return line.includes('FUTEX_WAKE') ? 'futex wake' : 'futex wait'
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0
}
