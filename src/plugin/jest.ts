/**
 * `corespun/plugin/jest`: a transform of jest, for its ES modules.
 *
 * Types are erased, so no other transform is needed; files that need more (JSX, enums) keep theirs.
 */
import { moduleOf } from './module.ts'
import { isTypeScript, stripTypes } from '../zone/internal.ts'

/** Transform one file, as jest asks for it. */
function process(code: string, path: string): { code: string; map?: string } {
  const module = moduleOf(code, path, false)
  if (module === undefined) return { code: isTypeScript(path) ? stripTypes(code, path) : code }
  const { code: text, map } = module.write({ file: JSON.stringify(module.url) })
  return { code: text, map: JSON.stringify(map) }
}

/**
 * The transform, named in the configuration of jest.
 * @example
 * ```ts
 * const config = { transform: { '\\.[jt]s$': 'corespun/plugin/jest' }, extensionsToTreatAsEsm: ['.ts'] }
 * console.log(Object.keys(config.transform).length) // 1
 * ```
 */
const transformer = { process }

export default transformer
