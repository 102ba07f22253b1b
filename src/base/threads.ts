/**
 * Node's `worker_threads`, loaded by its first use.
 *
 * A program that has imported Corespun and starts no worker does without it: 2.5 ms and 1.8 MB (Node 24).
 */
let loaded: typeof import('node:worker_threads') | undefined

/**
 * The module; internal, because programs without the types of Node see the types of this folder.
 * @internal
 */
export function threads(): typeof import('node:worker_threads') {
  return (loaded ??= process.getBuiltinModule('node:worker_threads'))
}
