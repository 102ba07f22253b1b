/**
 * Modules of a crate use each other in one direction: no circles.
 *
 * Cargo refuses circles of crates only. A module is a file. A parent that declares its child does not use it,
 * a child that names something of its parent does. Every path counts that begins with `crate`, `super` or
 * `self`; tests use what they need.
 */

export function circles(tree) {
  const sources = tree.sources.filter(({ path }) => /^crates\/[^/]+\/src\/(?!.*tests?\b).*\.rs$/.test(path))
  return [...new Set(sources.map(({ path }) => path.split('/')[1]))].flatMap((own) => {
    const ofCrate = sources.filter(({ path }) => path.split('/')[1] === own)
    const byName = new Map(ofCrate.map((source) => [nameOf(source.path), source]))
    const uses = new Map([...byName].map(([name, { text }]) => [name, usesOf(name, text, byName)]))
    return [...uses].flatMap(([name, used]) =>
      [...used].flatMap(([other, line]) => {
        if (!reaches(uses, other, name)) return []
        const message = `uses ${other || 'lib'}, which uses ${name || 'lib'}, directly or through others`
        return [{ path: byName.get(name).path, line, message }]
      }),
    )
  })
}

/** `link::tables` for crates/bridge/src/link/tables.rs; '' for lib.rs. */
function nameOf(path) {
  const inside = path.split('/').slice(3).join('::')
  return inside.replace(/(^lib|::mod)?\.rs$/, '')
}

/** The modules that a module uses, each with the first line of it. */
function usesOf(name, text, byName) {
  const code = text.replace(/\/\/.*/g, '').replace(/#\[cfg\((all\()?test[^]*$/, '')
  const uses = new Map()
  for (const { 0: path, index } of code.matchAll(/\b(crate|super|self)::[\w:]*(\{(?:[^{}]|\{[^{}]*\})*\})?/g))
    for (const each of spread(path)) {
      const used = moduleOf(resolve(each, name), byName)
      const line = code.slice(0, index).split('\n').length
      if (used !== undefined && used !== name && !uses.has(used)) uses.set(used, line)
    }
  return uses
}

/** `a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`. */
function spread(path) {
  const [, head, list] = /^([\w:]*?)(?:\{([^]*)\})?$/.exec(path.replace(/\s+/g, ' ').trim()) ?? []
  if (list === undefined) return head === undefined ? [] : [head]
  const parts = list.match(/[\w: ]+(\{[^{}]*\})?/g) ?? []
  return parts.filter((part) => part.trim()).flatMap((part) => spread(head + part.trim().split(' as ')[0]))
}

/** A path from the root of the crate. */
function resolve(path, name) {
  const [first, ...parts] = path.split('::').filter((part) => part !== '')
  const own = name === '' ? [] : name.split('::')
  if (first === 'crate') return parts
  if (first === 'super') {
    const ups = parts.findIndex((part) => part !== 'super')
    const climbed = ups < 0 ? parts.length : ups
    return [...own.slice(0, -1 - climbed), ...parts.slice(climbed)]
  }
  return [...own, ...parts]
}

/** The longest beginning of a path that is a module's file; names that lib.rs exports again are lib's. */
function moduleOf(parts, byName) {
  for (let length = parts.length; length > 0; length -= 1) {
    const name = parts.slice(0, length).join('::')
    if (byName.has(name)) return name
  }
  return undefined
}

function reaches(uses, from, to, seen = new Set()) {
  if (from === to) return true
  if (seen.has(from)) return false
  seen.add(from)
  return [...(uses.get(from)?.keys() ?? [])].some((next) => reaches(uses, next, to, seen))
}
