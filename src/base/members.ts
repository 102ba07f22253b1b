/**
 * What a value is, and which members of an object somebody meant to be called by name.
 *
 * Names come from command lines and from other threads. What every object or function inherits from the
 * language (`constructor`, `toString`, `call`) is not a member that its author wrote.
 */

export function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

/** Whether `value` is an object as `{}` or `Object.create(null)` make it. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** Whether `owner` has a member of that name that is its own or of a class of its program. */
export function hasMember(owner: object, name: string): boolean {
  if (Object.hasOwn(owner, name)) return true
  if (name === 'constructor' || name === '__proto__') return false
  let holder: object | null = owner
  while (holder !== null && !Object.hasOwn(holder, name)) {
    holder = Object.getPrototypeOf(holder) as object | null
  }
  return holder !== null && !isOfLanguage(holder)
}

/** The prototypes of plain objects and of functions, of any realm. */
function isOfLanguage(prototype: object): boolean {
  const above = Object.getPrototypeOf(prototype) as object | null
  return above === null || (typeof prototype === 'function' && Object.getPrototypeOf(above) === null)
}
