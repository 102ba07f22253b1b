/**
 * Imports point one way, through doors, and never in a circle.
 *
 * The order of modules is in ../table.mjs. Type imports count too: a cycle of types alone still means that
 * neither file can be read without the other.
 */
import { IS_TEST, scriptsOf, walk } from '../source.mjs'
import { MODULE_RANKS } from '../table.mjs'

/**
 * What a file imports from files of ours: by a relative path or by the package's own name, with `import`,
 * `export`, `import()`, `import('...')` as a type, `require` and what `createRequire` returns.
 *
 * Not seen: a specifier that is put together while the program runs, a `require` under another name, JSON
 * that is required, which is data, and `new URL('./worker.js', import.meta.url)`. Such a URL is no import: it
 * names the file that another thread starts with, and that file may import the one that starts it, as
 * worker.ts of src/zone does with owner.ts.
 * @param {import('../source.mjs').Source} source
 * @returns {{target: string, specifier: string, line: number}[]}
 */
export function importsOf(source) {
  const found = []
  walk(source.tree.program, (node) => {
    const specifier = textOf(specifierOf(node))
    const target = specifier === undefined ? undefined : resolve(source.path, specifier)
    if (target === undefined) return
    found.push({ target, specifier, line: source.lineAt(node.start) })
  })
  return found
}

/** What an import or a call of `require` names; undefined for everything else. */
function specifierOf(node) {
  if (/^(Import|Export(Named|All))Declaration$|^ImportExpression$/.test(node.type)) return node.source
  if (node.type === 'TSImportType') return node.source ?? node.argument?.literal
  if (node.type !== 'CallExpression') return undefined
  const { callee } = node
  const isRequire = callee.name === 'require' || callee.callee?.name === 'createRequire'
  const [named] = isRequire ? node.arguments : []
  return textOf(named)?.endsWith('.json') ? undefined : named
}

/** The text of a literal, or of a template that nothing is put into. */
function textOf(node) {
  if (node?.type === 'TemplateLiteral' && node.expressions.length === 0) return node.quasis[0].value.cooked
  return typeof node?.value === 'string' ? node.value : undefined
}

/** The file of ours that a specifier means; undefined when it means none. */
function resolve(path, specifier) {
  if (specifier === 'skein') return 'src/index.ts'
  if (specifier.startsWith('skein/')) return `src/${specifier.slice('skein/'.length)}/index.ts`
  if (!specifier.startsWith('.')) return undefined
  const parts = path.split('/').slice(0, -1)
  for (const part of specifier.split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '.' && part !== '') parts.push(part)
  }
  return parts.join('/').replace(/\.js$/, '.ts') // a source may name what it is compiled to
}

/** The module of a path below src/; `.` for a file of src/ itself. @param {string} path */
function moduleOf(path) {
  const parts = path.split('/')
  return parts.length === 2 ? '.' : parts[1]
}

/**
 * Upward and sideways imports, modules missing in the table.
 * @param {{sources: import('../source.mjs').Source[]}} tree
 */
export function importTable(tree) {
  return sourcesOf(tree).flatMap((source) => {
    const own = moduleOf(source.path)
    if (rankOf(own) === -1) {
      const message = `the module ${own} is not in the table of scripts/tidy/table.mjs`
      return [{ path: source.path, line: 1, subject: own, message }]
    }
    return importsOf(source).flatMap(({ target, specifier, line }) => {
      const other = moduleOf(target)
      if (!target.startsWith('src/')) {
        return [
          {
            path: source.path,
            line,
            subject: specifier,
            message: `src imports ${specifier}, which is outside it`,
          },
        ]
      }
      if (other === own || rankOf(other) < rankOf(own)) return []
      return [
        {
          path: source.path,
          line,
          subject: specifier,
          message: `${own} may not import ${other}: imports point down`,
        },
      ]
    })
  })
}

function rankOf(module) {
  return MODULE_RANKS.findIndex((modules) => modules.includes(module))
}

/**
 * Imports past another folder's index.ts, and of the own one. Tests share what supports them.
 * @param {{sources: import('../source.mjs').Source[]}} tree
 */
export function doors(tree) {
  return sourcesOf(tree).flatMap((source) => {
    const own = moduleOf(source.path)
    return importsOf(source).flatMap(({ target, specifier, line }) => {
      const other = moduleOf(target)
      const isDoor = target === `src/${other}/index.ts` || target === 'src/index.ts'
      const isSupport = IS_TEST.test(source.path) && IS_TEST.test(target)
      if (other !== own && target.startsWith('src/') && !isDoor && !isSupport) {
        const message = `${specifier} goes past the door of ${other}: import its index.ts`
        return [{ path: source.path, line, subject: specifier, message }]
      }
      if (other === own && isDoor && own !== '.' && !IS_TEST.test(source.path)) {
        const message = `${specifier} is this folder's own door: import the file itself`
        return [{ path: source.path, line, subject: specifier, message }]
      }
      return []
    })
  })
}

function sourcesOf(tree) {
  return scriptsOf(tree).filter(({ path }) => path.startsWith('src/'))
}

/** Circles of imports, each reported once. @param {{sources: import('../source.mjs').Source[]}} tree */
export function cycles(tree) {
  const sources = scriptsOf(tree)
  const edges = new Map(sources.map((source) => [source.path, importsOf(source).map(({ target }) => target)]))
  return circles(edges).map((circle) => ({
    path: circle[0],
    line: 1,
    subject: circle.join(' '),
    message: `imports in a circle: ${[...circle, circle[0]].join(' -> ')}`,
  }))
}

/**
 * One circle per back edge of a depth-first search; none means there are none.
 * @param {Map<string, string[]>} edges
 * @returns {string[][]}
 */
export function circles(edges) {
  const found = []
  const done = new Set()
  const trail = []
  const visit = (node) => {
    if (done.has(node) || !edges.has(node)) return
    const at = trail.indexOf(node)
    if (at !== -1) {
      found.push(trail.slice(at))
      return
    }
    trail.push(node)
    for (const next of new Set(edges.get(node))) visit(next)
    trail.pop()
    done.add(node)
  }
  for (const node of [...edges.keys()].sort()) visit(node)
  return found
}
