/**
 * A task that ends when nobody waits for it any more, and writes why into a file: also a process of its own
 * can do that.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { currentTask } from 'corespun/zone'

/** @param {string} path */
export function patient(path) {
  const signal = currentTask()?.signal
  return new Promise((resolve) => {
    const keepAlive = setInterval(() => {}, 1000)
    signal?.addEventListener('abort', () => {
      clearInterval(keepAlive)
      writeFileSync(`${path}.part`, String(signal.reason))
      renameSync(`${path}.part`, `${path}.ended`)
      resolve(undefined)
    })
    writeFileSync(`${path}.begun`, '')
  })
}
