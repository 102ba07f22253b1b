/**
 * One set-up at a time per checkout: `npm start` and `npm test` may be typed in two terminals at once.
 *
 * The lock is a file holding a process id and when that process began (ids are used again), linked into place
 * in one step, so two cannot both make it. A lock whose process has gone is taken over by renaming it away:
 * only one rename of it can succeed, and what was renamed is looked at again, because between reading and
 * renaming another process may have taken over first.
 */
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Stop } from './stop.mjs'

const POLL_MS = 100

/**
 * Run `work` while holding the lock.
 * @template T
 * @param {string} path The lock file.
 * @param {() => Promise<T>} work
 * @param {{say?: (line: string) => void, waitMsMax?: number}} [options]
 * @throws {Stop} When the holder lives and does not let go within `waitMsMax`.
 */
export async function locked(path, work, { say = console.error, waitMsMax = 30 * 60_000 } = {}) {
  mkdirSync(dirname(path), { recursive: true })
  await acquire(path, say, Date.now() + waitMsMax)
  const release = () => rmSync(path, { force: true })
  process.once('exit', release)
  try {
    return await work()
  } finally {
    process.removeListener('exit', release)
    release()
  }
}

async function acquire(path, say, deadline) {
  for (let told = false; !tryMake(path);) {
    const holder = holderOf(path)
    if (holder === undefined) continue // released between the two looks
    if (!isAlive(holder)) {
      takeAway(path, holder)
      continue
    }
    const pid = Number.parseInt(holder, 10)
    if (Date.now() > deadline)
      throw new Stop(`Process ${pid} has held ${path} for too long: end it and try again.`)
    if (!told) say(`set-up: waiting for process ${pid}, which is setting up the same checkout`)
    told = true
    await sleep(POLL_MS)
  }
}

/**
 * The file appears with its content in one step: written beside, then linked, which fails when one exists.
 */
function tryMake(path) {
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, identity(process.pid))
  try {
    linkSync(draft, path)
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

/** A process id, with the clock tick at which that process began where the system tells it. */
function identity(pid) {
  try {
    const afterName = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').pop()
    return `${pid} ${afterName.split(' ')[19]}`
  } catch {
    return `${pid}`
  }
}

function holderOf(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function isAlive(holder) {
  const pid = Number.parseInt(holder, 10)
  if (!(pid > 0)) return false
  try {
    process.kill(pid, 0)
  } catch (error) {
    if (error.code !== 'EPERM') return false // EPERM: it exists and belongs to someone else
  }
  return identity(pid) === holder
}

function takeAway(path, dead) {
  const aside = `${path}.${process.pid}.stale`
  try {
    renameSync(path, aside)
  } catch {
    return // another process took it away
  }
  if (holderOf(aside) !== dead) restore(aside, path)
  rmSync(aside, { force: true })
}

/** What was renamed was a living process's fresh lock: put it back. */
function restore(aside, path) {
  try {
    linkSync(aside, path)
  } catch {
    // a third process has made its own lock meanwhile; the loop of each sees who holds it
  }
}
