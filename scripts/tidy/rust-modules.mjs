/**
 * The modules of a crate, and which of them each one names: by `use`, nested groups and all, and in its code.
 *
 * A path is followed as rustc does, from `crate`, `super`, `self`, a child or a name that was imported,
 * through the imports of the modules on its way: what a parent imports or re-exports is what it came from,
 * not the parent's. Not seen are methods called on a value, what a glob brings (the glob's own path is), and
 * macros but those that `#[macro_export]` puts into the crate's root. Tests are left out.
 */
import { blanked, blockEnd, withoutTests } from './rust-text.mjs'

/**
 * @typedef {object} Module
 * @property {string} name Such as `port::zone::worker`, the crate's folder first.
 * @property {import('./source.mjs').Source} source Its file.
 * @property {Map<string, string[]>} names Imported names, and what they stand for as written.
 * @property {{path: string[], at: number}[]} paths What it names, as written, and where.
 */

/**
 * The modules of all crates by name, inline ones too.
 * @param {import('./source.mjs').Source[]} sources
 * @returns {Map<string, Module>}
 */
export function modulesOf(sources) {
  const files = new Map(sources.map((source) => [moduleOf(source.path), source]))
  const modules = new Map()
  for (const [name, source] of files) {
    if (!isTest(name, files)) readModule(name, source, modules)
  }
  for (const [name, source] of files) {
    if (modules.has(name)) exportMacros(name, source, modules)
  }
  return modules
}

/** 'crates/port/src/a/b.rs' is `port::a::b`; lib.rs is `port`. */
function moduleOf(path) {
  const [, crate, , ...rest] = path.split('/')
  const parts = rest.join('/').replace(/\.rs$/, '').split('/')
  if (/^(lib|main|mod)$/.test(parts.at(-1))) parts.pop()
  return [crate, ...parts].join('::')
}

/** Whether a module, or one that it lies in, is declared for tests alone. */
function isTest(name, files) {
  const [parent, own] = [name.split('::').slice(0, -1).join('::'), name.split('::').at(-1)]
  if (parent === '') return false
  const declaration = new RegExp(`\\bmod\\s+${own}\\s*;`)
  const text = files.get(parent)?.text ?? ''
  return (declaration.test(blanked(text)) && !declaration.test(withoutTests(text))) || isTest(parent, files)
}

/** Enter a file's module and those that stand in it as `mod name { ... }`. */
function readModule(name, source, modules) {
  const add = (module, code) => modules.set(module, { name: module, source, ...namesIn(code) })
  const read = (module, code) => {
    let own = code
    for (const match of code.matchAll(/\bmod\s+(\w+)\s*\{/g)) {
      if (own[match.index] === ' ') continue // inside one that was read already
      const end = blockEnd(code, match.index)
      const start = match.index + match[0].length
      own = own.slice(0, match.index) + ' '.repeat(end - match.index) + own.slice(end)
      read(`${module}::${match[1]}`, ' '.repeat(start) + code.slice(start, end - 1))
    }
    add(module, own)
  }
  read(name, withoutTests(source.text))
}

/** @param {string} code Of one module, without those in it. */
function namesIn(code) {
  const names = new Map()
  const paths = []
  const rest = code.replace(/\buse\s+([^;]+);/g, (text, tree, at) => {
    for (const { path, name } of pathsOf(tree)) {
      paths.push({ path, at })
      if (name !== undefined) names.set(name, path)
    }
    return ' '.repeat(text.length)
  })
  for (const { 0: text, index } of rest.matchAll(/(?<![\w:])[A-Za-z_]\w*(\s*::\s*\w+)+/g))
    paths.push({ path: text.split('::').map((part) => part.trim()), at: index })
  return { names, paths }
}

/**
 * The paths of a `use` tree and the names that they give; a glob gives none.
 * @param {string} tree Such as `crate::{a::{self, B as C}, d::*}`.
 * @returns {{path: string[], name: string | undefined}[]}
 */
export function pathsOf(tree) {
  const brace = tree.indexOf('{')
  const start = (brace === -1 ? tree : tree.slice(0, brace)).split('::').map((part) => part.trim())
  if (brace === -1) {
    const [, own, alias] = /^(\S+)(?:\s+as\s+(\w+))?$/.exec(start.pop() ?? '') ?? []
    if (own === undefined) return []
    if (own === '*') return [{ path: start, name: undefined }]
    const path = own === 'self' && start.length > 0 ? start : [...start, own]
    return [{ path, name: alias ?? path.at(-1) }]
  }
  const prefix = start.slice(0, -1)
  return partsOf(tree.slice(brace + 1, tree.lastIndexOf('}'))).flatMap((part) =>
    pathsOf(`${[...prefix, ''].join('::')}${part}`),
  )
}

/** A group's parts: split at its own commas, not at those of groups in it. */
function partsOf(group) {
  const parts = ['']
  let depth = 0
  for (const char of group) {
    if (char === '{') depth += 1
    if (char === '}') depth -= 1
    if (char === ',' && depth === 0) parts.push('')
    else parts[parts.length - 1] += char
  }
  return parts.map((part) => part.trim()).filter((part) => part !== '')
}

/** What `#[macro_export]` does: the macro is a name of the crate's root. */
function exportMacros(name, source, modules) {
  const root = name.split('::')[0]
  const exported = withoutTests(source.text).matchAll(/#\[macro_export\]\s*macro_rules!\s*(\w+)/g)
  for (const [, macro] of exported) {
    if (!modules.has(root)) modules.set(root, { name: root, source, names: new Map(), paths: [] })
    modules.get(root).names.set(macro, ['crate', ...name.split('::').slice(1), macro])
  }
}

/**
 * The modules that a path leads to: where its item stands, and each one on the way that only imports it.
 * @param {string[]} path As written.
 * @param {string} from The module that names it.
 * @param {Map<string, Module>} modules
 * @returns {string[]} Empty when it leads out of the crate.
 */
export function followed(path, from, modules, seen = new Set()) {
  const key = `${from} ${path.join('::')}`
  if (seen.has(key)) return [] // a name that stands for itself
  seen.add(key)
  const [first, ...rest] = path
  if (first === 'crate') return below(from.split('::')[0], rest)
  if (first === 'self') return up(from, rest)
  if (first === 'super') return up(from, path)
  const isOurs = modules.has(`${from}::${first}`) || modules.get(from)?.names.has(first)
  return isOurs ? below(from, path) : []

  function up(module, parts) {
    if (parts[0] !== 'super') return below(module, parts)
    return up(module.split('::').slice(0, -1).join('::'), parts.slice(1))
  }

  /** What `parts` lead to from a module on. */
  function below(module, parts) {
    if (parts.length === 0) return [module]
    if (modules.has(`${module}::${parts[0]}`)) return below(`${module}::${parts[0]}`, parts.slice(1))
    const imported = modules.get(module)?.names.get(parts[0])
    if (imported === undefined) return [module]
    return [module, ...followed([...imported, ...parts.slice(1)], module, modules, seen)]
  }
}
