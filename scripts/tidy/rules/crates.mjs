/**
 * Which crates of ours a crate may depend on, that only the binding sees napi, and which files choose by
 * system.
 *
 * Cargo refuses circles between crates and has no ranks, so a dependency that points up compiles.
 */

/** Crates of crates/ and the crates of ours that each may depend on. */
const CRATES = {
  layout: [],
  bridge: ['layout'],
  store: ['layout', 'bridge'],
  http: ['layout'],
  node: ['layout', 'bridge', 'store', 'http'],
}

/** The only crate that may depend on napi and on what reaches into Node. */
const BINDING_CRATE = 'node'
const BINDING_ONLY = /^(napi|napi-.*|libuv-sys.*)$/

/** Files that may ask for the operating system beyond `cfg(unix)`, for what is not built elsewhere. */
const SYSTEM_FILES = new Set([
  'crates/bridge/src/link/platform.rs',
  'crates/bridge/src/system/platform.rs',
  'crates/http/src/sys.rs',
  'crates/node/src/buffers.rs',
  'crates/node/src/engine/platform.rs',
  'crates/node/src/engine/uv.rs',
  'crates/store/src/file/platform.rs',
])
const ASKS_FOR_SYSTEM = /\btarget_(os|family|vendor)\b|\bcfg\w*!?\(.*\bwindows\b/

export function systemChoices(tree) {
  const others = tree.sources.filter(({ path }) => path.endsWith('.rs') && !SYSTEM_FILES.has(path))
  return others.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, index) => {
      if (!ASKS_FOR_SYSTEM.test(line)) return []
      return [{ path, line: index + 1, message: 'the system is asked for in SYSTEM_FILES only (crates.mjs)' }]
    }),
  )
}

export function crateTable(tree) {
  const manifests = tree.sources.filter(({ path }) => /^crates\/[^/]+\/Cargo\.toml$/.test(path))
  return manifests.flatMap((source) => {
    const own = source.path.split('/')[1]
    const at = (line, message) => ({ path: source.path, line, message })
    if (!(own in CRATES))
      return [at(1, `the crate ${own} is not in the table of scripts/tidy/rules/crates.mjs`)]
    return dependenciesOf(source.text).flatMap(({ name, line, ours, dev }) => {
      if (BINDING_ONLY.test(name) && own !== BINDING_CRATE) {
        return [at(line, `only crates/${BINDING_CRATE} may depend on ${name}`)]
      }
      if (ours === undefined || dev || CRATES[own].includes(ours)) return []
      return [at(line, `crates/${own} may not depend on crates/${ours}`)]
    })
  })
}

/**
 * The dependencies a manifest names.
 * @returns {{name: string, line: number, ours: string | undefined, dev: boolean}[]} ours: folder below
 *   crates/.
 */
function dependenciesOf(manifest) {
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
    const ours = folder ?? /^corespun-([\w-]+)$/.exec(name)?.[1]
    found.push({ name, line: index + 1, ours, dev: section.includes('dev-dependencies') })
  }
  return found
}
