/**
 * One set-up at a time per checkout: `npm start` and `npm test` may be typed in two terminals at once.
 *
 * The lock is a file holding a process id and when that process began (ids are used again), linked into place
 * in one step, so two cannot both make it. A lock whose process has gone is taken over by renaming it away:
 * only one rename of it can succeed, and what was renamed is looked at again, because between reading and
 * renaming another process may have taken over first. Where a file system has no links the lock is written in
 * place: still only one can make it, and one that is empty is given time to be filled.
 */
import { constants, copyFileSync, linkSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Stop } from './stop.mjs'

const POLL_MS = 100
/** A lock that is empty for longer was left by a process that ended before it wrote its number. */
const EMPTY_MS_MAX = 2000

/**
 * Run `work` while holding the lock.
 * @template T
 * @param {string} path The lock file.
 * @param {() => Promise<T>} work
 * @param {{say?: (line: string) => void, waitMsMax?: number, link?: typeof linkSync}} [options] `link`: tests
 *   replace it.
 * @throws {Stop} When the holder lives and does not let go within `waitMsMax`, or the lock's folder cannot be
 *   written.
 */
export async function locked(
  path,
  work,
  { say = console.error, waitMsMax = 30 * 60_000, link = linkSync } = {},
) {
  const folder = dirname(path)
  try {
    mkdirSync(folder, { recursive: true })
    await acquire(path, say, Date.now() + waitMsMax, link)
  } catch (error) {
    if (!['EACCES', 'EPERM', 'EROFS'].includes(error.code)) throw error
    const problem = `${folder} cannot be written (${error.code}) and this checkout is not set up`
    throw new Stop(`${problem}: make it writable for this user, or set up a copy of it.`)
  }
  const release = () => rmSync(path, { force: true })
  process.once('exit', release)
  try {
    return await work()
  } finally {
    process.removeListener('exit', release)
    release()
  }
}

async function acquire(path, say, deadline, link) {
  let emptyMs = 0
  for (let told = false; !tryMake(path, link);) {
    const holder = holderOf(path)
    if (holder === undefined) continue // released between the two looks
    if (holder === '' && emptyMs < EMPTY_MS_MAX) {
      emptyMs += POLL_MS
      await sleep(POLL_MS)
      continue
    }
    emptyMs = 0
    if (!isAlive(holder)) {
      takeAway(path, holder, link)
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
function tryMake(path, link) {
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, identity(process.pid))
  try {
    linkOrCopy(draft, path, link)
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Fails with EEXIST when `to` exists. The folder is known to be writable: what else fails are links. */
function linkOrCopy(from, to, link) {
  try {
    link(from, to)
  } catch (error) {
    if (error.code === 'EEXIST') throw error
    copyFileSync(from, to, constants.COPYFILE_EXCL)
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

function takeAway(path, dead, link) {
  const aside = `${path}.${process.pid}.stale`
  try {
    renameSync(path, aside)
  } catch {
    return // another process took it away
  }
  if (holderOf(aside) !== dead) restore(aside, path, link)
  rmSync(aside, { force: true })
}

/** What was renamed was a living process's fresh lock: put it back. */
function restore(aside, path, link) {
  try {
    linkOrCopy(aside, path, link)
  } catch {
    // a third process has made its own lock meanwhile; the loop of each sees who holds it
  }
}
