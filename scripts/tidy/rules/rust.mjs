/**
 * The Rust side of the house: crates depend one way, only the binding sees napi, modules of a crate form no
 * circle, functions fit on a screen, and nothing unwraps.
 *
 * What clippy and rustc already say (missing docs, undocumented unsafe) is not said again here.
 */
import { followed, modulesOf } from '../rust-modules.mjs'
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
 * Circles between the modules of one crate.
 *
 * Compared are siblings, each with all that lies in it: of two modules, the children of the deepest one that
 * holds both. So a module and one that lies in it are never compared: a child sees what is private to its
 * parent and the parent hands on what is its children's, which makes the two one unit in two files. Nor is
 * lib.rs, which holds all. What a path leads to, and which paths are seen, is said in ../rust-modules.mjs.
 * @param {{sources: import('../source.mjs').Source[]}} tree
 */
export function rustCycles(tree) {
  const modules = modulesOf(rustOf(tree).filter(({ path }) => /^crates\/[^/]+\/src\//.test(path)))
  const uses = new Map()
  for (const { name, source, paths } of modules.values()) {
    for (const { path, at } of paths) {
      for (const target of followed(path, name, modules)) {
        const [user, used] = siblings(name, target) ?? []
        if (user === undefined) continue
        if (!uses.has(user)) uses.set(user, new Map())
        if (!uses.get(user).has(used)) uses.get(user).set(used, { source, at })
      }
    }
  }
  const edges = new Map([...uses].map(([user, used]) => [user, [...used.keys()]]))
  return circles(edges).map((circle) => {
    const { source, at } = uses.get(circle[0]).get(circle[1])
    return {
      path: source.path,
      line: source.lineAt(at),
      subject: circle.join(' '),
      message: `modules use each other in a circle: ${[...circle, circle[0]].join(' -> ')}`,
    }
  })
}

/** The modules, of one parent, that hold one of two each; undefined when one of the two holds the other. */
function siblings(one, other) {
  const [ours, theirs] = [one.split('::'), other.split('::')]
  const apart = ours.findIndex((part, index) => part !== theirs[index])
  if (apart === -1 || apart === theirs.length) return undefined
  return [ours.slice(0, apart + 1).join('::'), theirs.slice(0, apart + 1).join('::')]
}
