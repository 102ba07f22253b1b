/**
 * `node --import corespun/plugin/register`: functions that are sent may use imports.
 *
 * On Node 20 and 22 before 22.15, hooks run in a thread of their own.
 * @module corespun/plugin/register
 */
import nodeModule from 'node:module'
import { otherRuntime } from '../base/index.ts'
import { FunctionError } from '../transport/index.ts'
import { isOfProgram, lifted } from './hooks.ts'

type Loaded = { readonly format: string; readonly source?: unknown }
type Load = (url: string, context: object, next: (url: string, context: object) => Loaded) => Loaded

const { register, registerHooks } = nodeModule as typeof nodeModule & {
  readonly registerHooks?: (hooks: { readonly load: Load }) => void
}

if (registerHooks === undefined) {
  const runtime = otherRuntime()
  // Bun has `register`, without effect.
  if (runtime !== undefined) throw new FunctionError('FUNCTION_HOOKS', { runtime })
  register('./hooks.js', import.meta.url)
} else {
  registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context)
      return isOfProgram(url) ? lifted(url, loaded) : loaded
    },
  })
}
