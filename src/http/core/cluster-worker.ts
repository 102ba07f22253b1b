/**
 * Whether this process shares its ports with others that node:cluster has started, as pm2 does.
 *
 * The native core then opens them with `SO_REUSEPORT`, and node:http takes them from the primary.
 */

/** Whether this is the main thread of a worker of node:cluster. */
export function isClusterWorker(): boolean {
  // Threads have no channel, nor has a process that was started otherwise: for those nothing is loaded.
  return process.send !== undefined && process.getBuiltinModule('node:cluster').isWorker
}
