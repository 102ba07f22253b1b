/**
 * Tasks of the section `an aborted call`: an endless loop that first sets a flag, and a sum.
 *
 * Pools that call a file's default export reach both by `either`.
 */

/** Never returns; `flag[0]` becomes 1 when it runs. */
export function spin({ flag }: { readonly flag: Int32Array }): never {
  Atomics.store(flag, 0, 1)
  for (;;);
}

/** What the same worker, or its replacement, does next. */
export function next({ a, b }: { readonly a: number; readonly b: number }): number {
  return a + b
}

export default function either(task: { flag: Int32Array } | { a: number; b: number }): number {
  return 'flag' in task ? spin(task) : next(task)
}
