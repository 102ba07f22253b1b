/**
 * The line that shows where a server listens.
 *
 * `serve` prints it on standard error, `corespun serve` on its standard output.
 */

/** @param workers How many workers serve; undefined for a server in the calling thread. */
export function servingLine(url: string, core: 'native' | 'node', workers?: number): string {
  const by =
    workers === undefined ? 'in one thread' : `with ${workers} ${workers === 1 ? 'worker' : 'workers'}`
  return `corespun: serving ${url} ${by} (${core} core)`
}
