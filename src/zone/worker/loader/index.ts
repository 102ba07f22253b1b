/**
 * How TypeScript modules load in this thread, on every supported Node.
 *
 * Node 22.18 and newer strips types itself: nothing happens here. Older ones get module hooks that strip
 * types in the same way (whitespace where types were, so every line and column stays), with the same engine.
 * What Node cannot strip is refused as Node does: enums, namespaces with values, parameter properties.
 */
import { threads } from '../../../base/index.ts'
import { setPreparation } from '../../../transport/internal.ts'
import { installCommonJs } from './commonjs.ts'
import { isTypeScript } from './strip.ts'

export { isTypeScript } from './strip.ts'

/** Set for all threads started after the main thread installed the hooks. */
const INSTALLED = 'corespun.typescript'
/** A module name in code that ends like TypeScript's. */
const NAMES_TYPESCRIPT = /\.[cm]?ts['"`]/

let done = false

/**
 * Let this thread load `.ts`, `.mts` and `.cts` modules. Idempotent; does nothing where Node does it itself.
 *
 * In the main thread the hooks are there when this returns, and every worker started later gets them too.
 * In a worker they cost some 60 ms and a thread, so unless the main thread has them they are put off until
 * Corespun is about to run something that is written in TypeScript or imports it.
 */
export function installTypeScript(): void {
  if (done || nativelyStripped()) return
  const { isMainThread, getEnvironmentData, setEnvironmentData } = threads()
  if (isMainThread) {
    setEnvironmentData(INSTALLED, true)
    install()
  } else if (getEnvironmentData(INSTALLED) === true) install()
  else
    setPreparation((file, text) => {
      if (!done && (isTypeScript(file) || NAMES_TYPESCRIPT.test(text))) install()
    })
}

/** Whether this Node strips types itself: from 22.18 on, unless an option disables it. */
function nativelyStripped(): boolean {
  return Boolean((process.features as { typescript?: string | false }).typescript)
}

function install(): void {
  done = true
  installCommonJs()
  const { register } = process.getBuiltinModule('node:module')
  register('./hooks.js', import.meta.url)
}
