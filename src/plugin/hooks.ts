/**
 * Node's hook for modules, also for the thread that Node runs hooks in.
 *
 * It changes what other loaders have loaded, so TypeScript comes with or without its types.
 */
import { readFileSync } from 'node:fs'
import type { LoadHook } from 'node:module'
import { fileURLToPath } from 'node:url'
import { isTypeScript } from '../zone/internal.ts'
import { moduleOf } from './module.ts'

/** Whether a URL can be a module of the program. */
export function isOfProgram(url: string): boolean {
  return url.startsWith('file:') && !url.includes('/node_modules/')
}

/** What a loader has loaded, with functions that are sent marked. */
export function lifted<Loaded extends { readonly format: unknown; readonly source?: unknown }>(
  url: string,
  loaded: Loaded,
): Loaded {
  if (!String(loaded.format).startsWith('module') || loaded.source == null) return loaded
  const code = textOf(loaded.source)
  const module = code === undefined ? undefined : moduleOf(code, url, false, typed(url, code))
  if (module === undefined) return loaded
  const { code: source, map } = module.write({ file: JSON.stringify(module.url) })
  const encoded = Buffer.from(JSON.stringify({ ...map, sources: [module.url] })).toString('base64')
  return { ...loaded, source: `${source}//# sourceMappingURL=data:application/json;base64,${encoded}\n` }
}

/** The file of a TypeScript module: a loader before this hook may have erased its types. */
function typed(url: string, code: string): string {
  if (!isTypeScript(url)) return code
  try {
    return readFileSync(fileURLToPath(url), 'utf8')
  } catch {
    return code // the module of a loader that has no file
  }
}

function textOf(source: unknown): string | undefined {
  if (typeof source === 'string') return source
  return source instanceof Uint8Array ? Buffer.from(source).toString() : undefined
}

export const load: LoadHook = async (url, context, nextLoad) => {
  const loaded = await nextLoad(url, context)
  return isOfProgram(url) ? lifted(url, loaded as never) : loaded
}
