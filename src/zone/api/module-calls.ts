/**
 * What `module` returns: an object whose methods are the exports of a module, called in a zone.
 *
 * A method is made when it is first read, and is the same function from then on.
 */
import type { ModuleCalls } from '../ground/task.ts'

/** @param call Calls the export of that name. */
export function moduleCalls<Module>(
  call: (name: string, args: unknown[]) => Promise<unknown>,
): ModuleCalls<Module> {
  const calls = new Map<string, unknown>()
  return new Proxy(Object.create(null) as object, {
    get(_, name) {
      // Not a promise: `await proxy` must not call the module.
      if (typeof name !== 'string' || name === 'then') return undefined
      let found = calls.get(name)
      if (found === undefined) calls.set(name, (found = (...args: unknown[]) => call(name, args)))
      return found
    },
  }) as ModuleCalls<Module>
}
