/**
 * What the stress programs share: numbers from a seed, and what a process has open.
 *
 * Linux only where it reads /proc; the tests that run these programs look for that first.
 */
import { readdirSync, readlinkSync } from 'node:fs'

const MODULE_FILE = /\.[cm]?[jt]s$/

/** Numbers below a bound, from a seed (mulberry32). @param {number} seed */
export function numbers(seed) {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

/** Threads of this process. */
export function threads() {
  return readdirSync('/proc/self/task').length
}

/**
 * Open descriptors, without those of module files: Node leaves one open when a thread is terminated while
 * its loader reads a file (seen on 20 and 24 without Corespun: a worker that imports eight files, terminated
 * meanwhile).
 */
export function fds() {
  return readdirSync('/proc/self/fd').filter((fd) => !MODULE_FILE.test(targetOf(fd))).length
}

function targetOf(fd) {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return '' // it was the descriptor of the folder itself
  }
}

/** Wait until it holds; Node ends threads a moment after it reports that. Returns whether it holds. */
export async function eventually(holds, waitMs = 30_000) {
  const deadline = performance.now() + waitMs
  while (!holds() && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 5))
  return holds()
}
