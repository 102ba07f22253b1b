/**
 * Why JSON.stringify refuses a value.
 *
 * The engine's error names neither the part nor its path, so the value is searched after the refusal.
 */

/** The first part of a value that JSON cannot represent, such as `a BigInt at items[3].id`. */
export function jsonFault(value: unknown): string | undefined {
  return faultIn(value, [], '')
}

function faultIn(value: unknown, within: readonly object[], path: string): string | undefined {
  const where = path === '' ? '' : ` at ${path.replace(/^\./, '')}`
  if (typeof value === 'bigint') return `a BigInt${where}`
  if (typeof value !== 'object' || value === null) return undefined
  if (within.includes(value)) return `a circular reference${where}`
  for (const [key, part] of Object.entries(value)) {
    const step = Array.isArray(value) ? `[${key}]` : `.${key}`
    const fault = faultIn(part, [...within, value], path + step)
    if (fault !== undefined) return fault
  }
  return undefined
}
