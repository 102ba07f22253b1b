/**
 * The runtime: which one it is, and Node's `worker_threads`, loaded by its first use.
 *
 * A program that has imported Corespun and starts no worker does without that: 2.5 ms and 1.8 MB (Node 24).
 */
let loaded: typeof import('node:worker_threads') | undefined

/**
 * The module; internal, because programs without the types of Node see the types of this folder.
 * @internal
 */
export function threads(): typeof import('node:worker_threads') {
  return (loaded ??= process.getBuiltinModule('node:worker_threads'))
}

/**
 * A runtime beside Node that runs programs for it, such as `Bun 1.4.5`; `undefined` in Node. Asked only where
 * something would end the process there, or cannot work.
 */
export function otherRuntime(): string | undefined {
  const { bun, deno } = process.versions as { readonly bun?: string; readonly deno?: string }
  if (bun !== undefined) return `Bun ${bun}`
  return deno === undefined ? undefined : `Deno ${deno}`
}
