/**
 * Tasks of the section `an aborted call`: a loop without end that first shows that it runs, and a sum.
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

/** One door for pools that call a file's default export. */
export default function either(task: { flag: Int32Array } | { a: number; b: number }): number {
  return 'flag' in task ? spin(task) : next(task)
}
