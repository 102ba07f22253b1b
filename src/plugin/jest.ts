/**
 * `corespun/plugin/jest`: a transform of jest, for its ES modules.
 *
 * Types are erased, so no other transform is needed; files that need more (JSX, enums) keep theirs.
 * @module corespun/plugin/jest
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
const transformer = {
  process,
  /**
   * jest calls it with the options behind the transform's name.
   * @throws {TypeError} When there are any: jest applies one transform to a file, so none can be chained.
   */
  createTransformer(options: object = {}): { readonly process: typeof process } {
    const names = Object.keys(options)
    if (names.length === 0) return transformer
    throw new TypeError(
      `corespun/plugin/jest takes no options, received ${names.join(', ')}: jest applies one transform ` +
        'to a file; name another one for the files that need it, by a pattern of their own in "transform"',
    )
  },
}

export default transformer
