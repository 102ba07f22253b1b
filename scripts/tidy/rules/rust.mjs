/**
 * The Rust side of the house: crates depend one way, only the binding sees napi, modules of a crate form no
 * circle, functions fit on a screen, and nothing unwraps.
 *
 * What clippy and rustc already say (missing docs, undocumented unsafe) is not said again here.
 */
import { blanked, functionsOf, withoutTests } from '../rust-text.mjs'
import { rustOf } from '../source.mjs'
import { BINDING_CRATE, BINDING_ONLY, CRATES, FUNCTION_LINES_MAX } from '../table.mjs'
import { circles } from './imports.mjs'

/** @param {{sources: import('../source.mjs').Source[]}} tree */
export function crateTable(tree) {
  const manifests = tree.sources.filter(({ path }) => /^crates\/[^/]+\/Cargo\.toml$/.test(path))
  return manifests.flatMap((source) => {
    const own = source.path.split('/')[1]
    const at = (line, subject, message) => ({ path: source.path, line, subject, message })
    if (!(own in CRATES))
      return [at(1, own, `the crate ${own} is not in the table of scripts/tidy/table.mjs`)]
    return dependenciesOf(source.text).flatMap(({ name, line, ours, dev }) => {
      if (BINDING_ONLY.test(name) && own !== BINDING_CRATE) {
        return [at(line, name, `only crates/${BINDING_CRATE} may depend on ${name}`)]
      }
      if (ours === undefined || dev || CRATES[own].includes(ours)) return []
      return [at(line, ours, `crates/${own} may not depend on crates/${ours}`)]
    })
  })
}

/**
 * The dependencies a manifest names.
 * @param {string} manifest
 * @returns {{name: string, line: number, ours: string | undefined, dev: boolean}[]} ours: folder below
 *   crates/.
 */
export function dependenciesOf(manifest) {
  const found = []
  let section = ''
  for (const [index, line] of manifest.split('\n').entries()) {
    const header = /^\[(.+)\]/.exec(line.trim())?.[1]
    if (header !== undefined) section = header
    const table = /(dev-|build-)?dependencies\.([\w-]+)$/.exec(header ?? '')
    const entry = /(^|\.)(dev-|build-)?dependencies$/.test(section)
      ? /^\s*"?([\w-]+)"?[.\s]*(\w+\s*)?=(.*)/.exec(line)
      : null
    const name = table?.[2] ?? entry?.[1]
    if (name === undefined) continue
    const folder = /path\s*=\s*"\.\.\/([\w-]+)"/.exec(entry?.[3] ?? '')?.[1]
    const ours = folder ?? /^skein-([\w-]+)$/.exec(name)?.[1]
    found.push({ name, line: index + 1, ours, dev: section.includes('dev-dependencies') })
  }
  return found
}

/** @param {{sources: import('../source.mjs').Source[]}} tree */
export function rustFunctionSizes(tree) {
  return rustOf(tree).flatMap((source) => {
    return functionsOf(blanked(source.text)).flatMap(({ name, start, end }) => {
      const line = source.lineAt(start)
      const lines = source.lineAt(end) - line + 1
      if (lines <= FUNCTION_LINES_MAX) return []
      return [
        {
          path: source.path,
          line,
          subject: name,
          message: `${name} has ${lines} lines; at most ${FUNCTION_LINES_MAX}`,
        },
      ]
    })
  })
}

/**
 * `.unwrap()` outside tests: say with `expect` what cannot be, or return the error.
 * @param {{sources: import('../source.mjs').Source[]}} tree
 */
export function unwraps(tree) {
  const wanted = rustOf(tree).filter(
    ({ path }) => /^crates\/[^/]+\/(src\/|build\.rs)/.test(path) && !/\/tests?\.rs$/.test(path),
  )
  return wanted.flatMap((source) => {
    return [...withoutTests(source.text).matchAll(/\.unwrap\(\)/g)].map((match) => {
      const line = source.lineAt(match.index)
      const subject = functionAround(source.text, match.index)
      return {
        path: source.path,
        line,
        subject,
        message: '`.unwrap()` outside tests: `expect` says why it cannot fail',
      }
    })
  })
}

function functionAround(text, offset) {
  const around = functionsOf(blanked(text)).filter(({ start, end }) => start <= offset && offset < end)
  return around.at(-1)?.name ?? 'the file'
}

/**
 * Circles between the modules of one crate; lib.rs is the crate's door and starts none.
 * @param {{sources: import('../source.mjs').Source[]}} tree
 */
export function rustCycles(tree) {
  const files = rustOf(tree).filter(({ path }) => /^crates\/[^/]+\/src\//.test(path))
  const byModule = new Map(files.map((source) => [moduleOf(source.path), source]))
  const edges = new Map()
  for (const [module, source] of byModule) {
    if (module.includes('::'))
      edges.set(
        module,
        pathsIn(source, module)
          .map((path) => nearest(path, byModule))
          .filter(isOther(module)),
      )
  }
  return circles(edges).map((circle) => ({
    path: byModule.get(circle[0]).path,
    line: 1,
    subject: circle.join(' '),
    message: `modules use each other in a circle: ${[...circle, circle[0]].join(' -> ')}`,
  }))
}

const isOther = (module) => (target) => target !== undefined && target !== module

/** 'crates/port/src/a/b.rs' is `port::a::b`; lib.rs is `port`. */
function moduleOf(path) {
  const [, crate, , ...rest] = path.split('/')
  const parts = rest.join('/').replace(/\.rs$/, '').split('/')
  if (/^(lib|main|mod)$/.test(parts.at(-1))) parts.pop()
  return [crate, ...parts].join('::')
}

/**
 * Everything a module names by `crate::…` or `super::…`, as full paths. Groups are taken apart one level
 * deep.
 */
function pathsIn(source, module) {
  const crate = module.split('::')[0]
  const code = withoutTests(source.text)
  return [...code.matchAll(/\b(crate|super)((?:::super)*)((?:::\w+)*)(?:::\{([^{}]*)\})?/g)].flatMap(
    (match) => {
      const [, root, ups, path, group] = match
      const above = module.split('::').slice(0, -1 - ups.split('::super').length + 1)
      const base = (root === 'crate' ? crate : above.join('::')) + path
      return group === undefined
        ? [base]
        : group.split(',').map((part) => `${base}::${part.trim().split(/\W/)[0]}`)
    },
  )
}

function nearest(path, byModule) {
  const parts = path.split('::')
  while (parts.length > 0 && !byModule.has(parts.join('::'))) parts.pop()
  return parts.length > 0 ? parts.join('::') : undefined
}
