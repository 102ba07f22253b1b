/**
 * `node --import corespun/plugin/register`: functions that are sent may use imports.
 *
 * On Node 20 and 22 before 22.15, hooks run in a thread of their own.
 */
import nodeModule from 'node:module'
import { isOfProgram, lifted } from './hooks.ts'

type Loaded = { readonly format: string; readonly source?: unknown }
type Load = (url: string, context: object, next: (url: string, context: object) => Loaded) => Loaded

const { register, registerHooks } = nodeModule as typeof nodeModule & {
  readonly registerHooks?: (hooks: { readonly load: Load }) => void
}

if (registerHooks === undefined) register('./hooks.js', import.meta.url)
else {
  registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context)
      return isOfProgram(url) ? lifted(url, loaded) : loaded
    },
  })
}
