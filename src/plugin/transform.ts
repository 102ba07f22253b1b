/**
 * The transform: a module whose functions that are sent are marked with their source.
 *
 * Calls receive a short mark, `$corespunLifted(fn, $corespunUnit0)`; the import and the units come after the
 * last line, as hoisted functions, so no line moves. The function itself stays where it is: in the thread
 * that made it, nothing changes. In bundles, URLs of files of the program become those of emitted files.
 */
import { FunctionError } from '../transport/index.ts'
import {
  isFunction,
  type LiftedSource,
  namesOf,
  parseSource,
  readFunctionText,
} from '../transport/internal.ts'
import { locationsOf, type Location } from './locations.ts'
import { sitesOf, type Site } from './sites.ts'
import { exportsZone } from './zones/modules.ts'
import { ZoneTypes } from './zones/types.ts'
import { Zones } from './zones/zones.ts'
import { edited, mapOf, type Edit, type SourceMap } from './source-map.ts'
import { unitOf, type Unit } from './unit.ts'

/** Where the program finds a module that a tool transforms. */
export interface Placement {
  /** JavaScript for the URL of the module where the program runs; '' is the file that the tool writes. */
  readonly file: string
  /** The name of the file in stack traces, where it is not `file`. */
  readonly shown?: string | undefined
  /** JavaScript for the URL or specifier of a file. Default: the specifier, and no change of a URL. */
  readonly located?: ReadonlyMap<string, string>
}

/** A module with functions that are sent, or with URLs of files that workers load. */
export interface Liftable {
  /** What the functions import, and the files that the module names. */
  readonly specifiers: readonly string[]
  /** Write the module. */
  write(placement: Placement): { readonly code: string; readonly map: SourceMap }
}

const RELATIVE_IMPORT = /\bimport\s*\(\s*(?!['"`](?:node:|@?\w))/

/** The names that the transform adds; a module that has them is left as it is. */
const ADDED = '$corespun'

/**
 * Find the functions of a module that are sent. `undefined` when nothing changes, or when the text is not a
 * module.
 * @param code JavaScript.
 * @param id Its file.
 * @param isBundled Whether the module is not there where the program runs.
 * @param original The same with its types, at the same positions.
 * @throws {FunctionError} `FUNCTION_OUTER_THIS`, `FUNCTION_SUPER` or `FUNCTION_PRIVATE` for a function that
 * cannot be sent: the error of the call, when the program is built.
 */
export function liftable(code: string, id: string, isBundled = false, original = code): Liftable | undefined {
  if (code.includes(ADDED)) return undefined
  let names
  try {
    names = namesOf(parseSource(code, 'module'))
  } catch {
    // JSX, or an error that the tool itself reports.
    return undefined
  }
  const types = new ZoneTypes(original, code)
  const zones = new Zones(names, types, (specifier, name) => exportsZone(id, specifier, name))
  const sites = sitesOf(names, zones)
  for (const site of sites) refuseTied(site, code, id)
  const found = sites.flatMap((site): Lift[] => {
    const unit = unitOf(site, names, code)
    // A module that the function itself imports by a relative name is known to the bundler only.
    return unit === undefined || (isBundled && RELATIVE_IMPORT.test(unit.code))
      ? []
      : [{ site, unit, inner: [] }]
  })
  const lifts = found.map((lift): Lift => {
    const inner = found.flatMap((other, at) => (isSentBy(lift, other) ? [at] : []))
    if (inner.length === 0) return lift
    const marks = inner.flatMap((at) => marksOf(found[at], at))
    return { ...lift, inner, unit: unitOf(lift.site, names, code, marks) as Unit }
  })
  const locations = isBundled ? locationsOf(names, id) : []
  if (lifts.length + locations.length === 0) return undefined
  const imported = lifts.flatMap(({ unit }) => unit.imports.map(({ from }) => from))
  const named = locations.flatMap(({ specifier }) => (specifier === '' ? [] : [specifier]))
  return {
    specifiers: [...new Set([...imported, ...named])],
    write(placement) {
      const units = lifts.map((lift, at) => unitText(lift, at, placement)).join('\n')
      const edits = editsOf(code, lifts, locations, placement)
      const names = `emittedUrl as ${ADDED}Url, lifted as ${ADDED}Lifted`
      return {
        code: `${edited(code, edits)}\nimport { ${names} } from 'corespun/transport'\n${units}\n`,
        map: mapOf(code, id, edits),
      }
    },
  }
}

function refuseTied({ node, isSent }: Site, code: string, file: string): void {
  if (!isSent || !isFunction(node)) return
  const { outerKeyword, usesSuper, privateNames } = readFunctionText(code.slice(node.start, node.end))
  const before = code.slice(0, node.start).split(/\r\n|[\n\r\u2028\u2029]/)
  const name = (node.id as { name?: string } | null)?.name ?? ''
  const location = { name, file, line: before.length, column: (before.at(-1) as string).length + 1 }
  if (outerKeyword !== undefined)
    throw new FunctionError('FUNCTION_OUTER_THIS', { ...location, word: outerKeyword })
  if (usesSuper) throw new FunctionError('FUNCTION_SUPER', location)
  if (privateNames.length > 0)
    throw new FunctionError('FUNCTION_PRIVATE', { ...location, names: privateNames })
}

/** A function that is sent, with what is taken for it. */
interface Lift {
  readonly site: Site
  readonly unit: Unit
  /** Which lifts are in the unit: what it sends itself, where it runs. */
  readonly inner: readonly number[]
}

/** Whether the unit of a lift has the call that sends the other, and not the other that of the lift. */
function isSentBy(lift: Lift, other: Lift): boolean {
  return has(lift, other) && !has(other, lift)
}

function has({ site, unit }: Lift, { site: { node } }: Lift): boolean {
  return node !== site.node && unit.pieces.some(({ start, end }) => node.start >= start && node.end <= end)
}

function marksOf({ site, unit }: Lift, at: number): Edit[] {
  const { start, end } = site.node
  const key = site.shorthand === undefined ? '' : `${site.shorthand}: `
  return [
    { start, end: start, text: `${key}${ADDED}Lifted(` },
    { start: end, end, text: `, ${ADDED}Unit${at}${valuesOf(unit)})` },
  ]
}

function editsOf(
  code: string,
  lifts: readonly Lift[],
  locations: readonly Location[],
  { located }: Placement,
): Edit[] {
  const marks = lifts.flatMap(marksOf)
  const changed = locations.flatMap(({ start, end, specifier, suffix }) => {
    if (specifier === '') return [{ start, end, text: suffix }]
    const where = located?.get(specifier)
    const breaks = code.slice(start, end).replace(/[^\n\r\u2028\u2029]/g, '')
    return where === undefined ? [] : [{ start, end, text: `${ADDED}Url(${where})${suffix}${breaks}` }]
  })
  return [...marks, ...changed].toSorted((a, b) => a.start - b.start)
}

/** The values of captured variables, read where the function is sent. */
function valuesOf({ captured }: Unit): string {
  return captured.length === 0 ? '' : `, [${captured.join(', ')}]`
}

/** Counters of coverage tools have no meaning in code that nobody wrote. */
const NOT_COVERED = '/* v8 ignore next */ /* c8 ignore next */ /* istanbul ignore next */'

function unitText({ unit, inner }: Lift, at: number, { file, shown, located }: Placement): string {
  const { imports, metaName, captured, code, line, column, usesImport } = unit
  const source: Omit<LiftedSource, 'imports' | 'file' | 'inner'> = {
    ...{ code, line, column, usesImport },
    ...(shown === undefined ? {} : { shown }),
    ...(metaName === undefined ? {} : { metaName }),
    ...(captured.length === 0 ? {} : { captured }),
  }
  const listed = imports.map(({ local, from, name }) => {
    const where = located?.get(from)
    const named = `local: '${local}', from: ${where ?? JSON.stringify(from)}, name: ${JSON.stringify(name)}`
    return `{ ${named}${where === undefined ? '' : ', isEmitted: true'} }`
  })
  if (inner.length > 0) listed.push(`{ local: '${ADDED}Lifted', from: 'corespun/transport', name: 'lifted' }`)
  const units = inner.map((each) => `${ADDED}Unit${each}: ${ADDED}Unit${each}()`)
  const sent = inner.length === 0 ? '' : `, inner: { ${units.join(', ')} }`
  const fields = JSON.stringify(source).slice(1, -1)
  const head = `${NOT_COVERED} function ${ADDED}Unit${at}()`
  return `${head} { return { ${fields}, file: ${file}, imports: [${listed.join(', ')}]${sent} } }`
}
