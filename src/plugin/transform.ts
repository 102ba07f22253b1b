/**
 * The transform: a module whose functions that are sent are marked with their source.
 *
 * Calls receive a short mark, `$corespunLifted(fn, $corespunUnit0)`; the import and the units come after the
 * last line, as hoisted functions, so no line moves. The function itself stays where it is: in the thread
 * that made it, nothing changes.
 */
import { parseSource, type LiftedSource } from '../transport/internal.ts'
import { namesOf } from './scopes.ts'
import { sitesOf } from './sites.ts'
import { mapOf, type SourceMap } from './source-map.ts'
import { unitOf, type Unit } from './unit.ts'

/** Where the program finds a module that a tool transforms. */
export interface Placement {
  /** URL of the module for the program that runs; '' is the file that the tool writes. */
  readonly file: string
  /** The name of the file in stack traces, where it is not `file`. */
  readonly shown?: string | undefined
  /** JavaScript for the URL or specifier of an import. Default: the specifier. */
  readonly located?: ReadonlyMap<string, string>
}

/** A module with functions that are sent. */
export interface Liftable {
  /** What the functions import. */
  readonly specifiers: readonly string[]
  /** Write the module. */
  write(placement: Placement): { readonly code: string; readonly map: SourceMap }
}

const RELATIVE_IMPORT = /\bimport\s*\(\s*(?!['"`](?:node:|@?\w))/

/** The names that the transform adds; a module that has them is left as it is. */
const ADDED = '$corespun'

/**
 * Find the functions of a module that are sent. `undefined` without such a function, or when the text is not
 * a module.
 * @param code JavaScript.
 * @param id Its file, for the source map.
 * @param isBundled Whether the module is not there where the program runs.
 */
export function liftable(code: string, id: string, isBundled = false): Liftable | undefined {
  if (!code.includes('corespun') || code.includes(ADDED)) return undefined
  let names
  try {
    names = namesOf(parseSource(code, 'module'))
  } catch {
    // JSX, or an error that the tool itself reports.
    return undefined
  }
  const lifts = sitesOf(names).flatMap(({ node, scope }) => {
    const unit = unitOf({ node, scope }, names, code)
    // A module that the function itself imports by a relative name is known to the bundler only.
    return unit === undefined || (isBundled && RELATIVE_IMPORT.test(unit.code)) ? [] : [{ node, unit }]
  })
  if (lifts.length === 0) return undefined
  const edits = lifts.flatMap(({ node }, at) => [
    { at: node.start, text: `${ADDED}Lifted(` },
    { at: node.end, text: `, ${ADDED}Unit${at})` },
  ])
  return {
    specifiers: [...new Set(lifts.flatMap(({ unit }) => unit.imports.map(({ from }) => from)))],
    write(placement) {
      const added = lifts.map(({ unit }, at) => unitText(unit, at, placement)).join('\n')
      const text = edited(code, edits)
      return {
        code: `${text}\nimport { lifted as ${ADDED}Lifted } from 'corespun/transport'\n${added}\n`,
        map: mapOf(code, id, edits),
      }
    },
  }
}

/** Counters of coverage tools have no meaning in code that nobody wrote. */
const NOT_COVERED = '/* v8 ignore next */ /* c8 ignore next */ /* istanbul ignore next */'

function unitText(unit: Unit, at: number, { file, shown, located }: Placement): string {
  const { imports, metaName, ...rest } = unit
  const source: Omit<LiftedSource, 'imports'> = {
    ...rest,
    file,
    ...(shown === undefined ? {} : { shown }),
    ...(metaName === undefined ? {} : { metaName }),
  }
  const listed = imports.map(({ local, from, name }) => {
    const where = located?.get(from) ?? JSON.stringify(from)
    return `{ local: '${local}', from: ${where}, name: ${JSON.stringify(name)} }`
  })
  const fields = JSON.stringify(source).slice(1, -1)
  const head = `${NOT_COVERED} function ${ADDED}Unit${at}()`
  return `${head} { return { ${fields}, imports: [${listed.join(', ')}] } }`
}

function edited(code: string, edits: readonly { readonly at: number; readonly text: string }[]): string {
  let result = ''
  let from = 0
  for (const { at, text } of edits) {
    result += code.slice(from, at) + text
    from = at
  }
  return result + code.slice(from)
}
