/**
 * Loaded before every test file (`--import`): the file fails when it leaves anything behind.
 *
 * What counts: handles that keep the process alive, threads, child processes, open files and sockets, and
 * files in the temporary folder. Each is compared with what was there before the first line of the test file
 * ran, in the same process. A file whose tests have ended gets PATIENCE_MS to fall silent, and a thread as
 * long to end: so much that a machine whose cores are all busy does not decide it.
 *
 * Deliberately absent: memory. Stress tests measure it themselves, because only they can judge what is too
 * much.
 */
import { after } from 'node:test'
import { chmodSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread } from 'node:worker_threads'

/** The tests of planted leaks, which never go, make it short. */
const PATIENCE_MS = Number(process.env.CORESPUN_LEAK_PATIENCE_MS ?? 30_000)
const POLL_MS = 20

/** Left in the temporary folder by Node and npm themselves, and the folder of control sockets. */
const TMP_IGNORED = /^node-compile-cache$|^node-jiti$|^corespun-\d+$/

/**
 * Node 20 leaves a module open that a thread was loading when it was ended (hundreds after 60 threads); newer
 * ones do not.
 */
const OPEN_IGNORED = process.version.startsWith('v20.') ? /\.[cm]?[jt]s$/ : undefined

/**
 * Threads of the kernel, by name. libuv's loops use io_uring on some Nodes: Linux starts a worker where an
 * operation cannot end at once, and keeps the last one for as long as the ring.
 */
const THREADS_IGNORED = /^iou-(wrk|sqp)-/

// Workers and child processes inherit `--import`; only the process of a test file watches itself.
if (isMainThread && /\.test\.m?js$/.test(process.argv[1] ?? '')) await watch()

async function watch() {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-test-'))
  // Tests of permissions become somebody else, who has to get as far as their files.
  chmodSync(folder, 0o711)
  process.env.TMPDIR = folder
  await stat('/') // starts libuv's threads, which stay for good and would count as leaked
  const before = { threads: threads().length, files: openFiles() }
  after(async () => {
    endWithin(PATIENCE_MS)
    // The idle sockets of `fetch` keep no process alive, and close a turn or two after their server did.
    const deadline = Date.now() + PATIENCE_MS / 2
    while (openLeaks(before.files).length > 0 && Date.now() < deadline) await sleep(POLL_MS)
  })
  // The event loop joins threads and waits for processes that have ended.
  let lastMs
  process.on('beforeExit', () => {
    lastMs ??= Date.now() + PATIENCE_MS / 2
    const isRunning = threads().length > before.threads || childLeaks().length > 0
    if (isRunning && Date.now() < lastMs) setTimeout(() => {}, POLL_MS)
  })
  process.on('exit', () => {
    const running = [...threadLeaks(before.threads), ...childLeaks()]
    const leaks = [...running, ...openLeaks(before.files), ...tmpLeaks(folder)]
    rmSync(folder, { recursive: true, force: true })
    if (leaks.length > 0) fail(leaks)
  })
}

/** The tests are over: a process that something keeps alive is ended, and what kept it is printed. */
function endWithin(graceMs) {
  setTimeout(() => {
    const kinds = process.getActiveResourcesInfo()
    const what = kinds.length > 0 ? kinds.join(', ') : 'a worker thread or a native handle'
    fail([`still alive ${graceMs / 1000} s after the last test, kept by: ${what}`])
    process.exit(1)
  }, graceMs).unref()
}

function fail(leaks) {
  for (const leak of leaks) process.stderr.write(`leak: ${basename(process.argv[1])}: ${leak}\n`)
  process.exitCode = 1
}

function threads() {
  return list('/proc/self/task')
    .map((id) => ({ id, name: read(`/proc/self/task/${id}/comm`).trim() }))
    .filter(({ name }) => name !== '' && !THREADS_IGNORED.test(name))
}

/** A thread that is ending may need a moment; one that is not is still there after it. */
function threadLeaks(countBefore) {
  const deadline = Date.now() + PATIENCE_MS
  while (threads().length > countBefore && Date.now() < deadline) sleepSync(POLL_MS)
  const left = threads()
  if (left.length <= countBefore) return []
  return [`${left.length - countBefore} threads more than before: ${left.map(({ name }) => name).join(', ')}`]
}

function childLeaks() {
  const ids = threads().flatMap(({ id }) => read(`/proc/self/task/${id}/children`).split(' ').filter(Boolean))
  return ids.map((id) => `child process ${id}: ${read(`/proc/${id}/cmdline`).replaceAll('\0', ' ').trim()}`)
}

/** Files and sockets by what they point at; pipes, eventfds and epolls belong to Node's own loops. */
function openFiles() {
  const targets = list('/proc/self/fd').map((fd) => readlink(`/proc/self/fd/${fd}`))
  return targets.filter(
    (target) =>
      /^(\/|socket:)/.test(target) &&
      !/^\/(dev|proc|sys)\//.test(target) &&
      OPEN_IGNORED?.test(target) !== true,
  )
}

function openLeaks(before) {
  const left = [...openFiles()]
  for (const target of before) if (left.includes(target)) left.splice(left.indexOf(target), 1)
  return left.map((target) => `left open: ${target}`)
}

function tmpLeaks(folder) {
  return list(folder)
    .filter((name) => !TMP_IGNORED.test(name))
    .map((name) => `left in the temporary folder: ${name}`)
}

function list(folder) {
  return orElse(() => readdirSync(folder), [])
}

function read(path) {
  return orElse(() => readFileSync(path, 'latin1'), '')
}

function readlink(path) {
  return orElse(() => readlinkSync(path), '')
}

/** Where the system has no such list (no /proc), that kind of leak is not seen. */
function orElse(look, nothing) {
  try {
    return look()
  } catch {
    return nothing
  }
}

function sleepSync(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
