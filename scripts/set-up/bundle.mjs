/**
 * src/ bundled to lib/: what `import 'corespun'` loads, in a checkout and in the package.
 *
 * Opening and linking a module costs Node a quarter of a millisecond, and dist has two hundred. In lib the
 * doors are files of the folder, and all else lies in chunks, so all doors have the same classes and tables.
 * So do modules that threads load by URL: an install has thirty folders of 4 kB less. Modules are joined, and
 * spaces are left out, a seventh of lib: names stay, and each statement has its line, for stack traces.
 *
 * Three details differ from dist, each for a reason:
 * - `import.meta.url` is the URL that the module would have in lib, wherever its code was put.
 * - Modules of Node are taken by `process.getBuiltinModule`. An import of one makes Node read all of its
 *   exports, and some of them are getters that load undici or the streams of standard output.
 * - Comments and source maps are left out. Coverage, which needs maps, is measured with joined, by
 *   `--conditions=corespun-joined`.
 */
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, posix, relative, sep } from 'node:path'
import { brotliCompressSync, constants } from 'node:zlib'
import { contentOf, doors, filesBelow, inLib, inRoot, LIB, writeAll } from './paths.mjs'
import { bundleTypes } from './types.mjs'

/** An import of one of Node's modules; imports of types alone do not match. */
const BUILTIN_IMPORT = /^import (?!type\b)([^'"]*?) from '(node:[\w/]+)'/gm
/** A module that is loaded by its URL: in a worker, or in Node's thread for hooks. */
const LOADED_BY_URL = /(?:new URL|register)\('(\.{1,2}\/[\w./-]+)\.js', import\.meta\.url\)/g
/** An import of the bundler's helpers without any of them: a file to open for nothing. */
const NOTHING_IMPORTED = /^import "[./a-z]*rolldown-runtime\.js";\n/gm
/** Written instead of `import.meta.url` until the chunk of a module is decided. */
const LOCATION = '__CORESPUN_MODULE_URL__'

/** Neither doors nor chunks, and where they are; the bench and tests of the package load two of them. */
const KEPT = { 'cli/main': 'cli/main', 'native/index': 'native/index', 'transport/internal': 'internal' }

/** Of zones: what workers alone load, and what is loaded when it is needed. */
const OF_WORKERS =
  /[\\/]zone[\\/]worker[\\/](worker|cached|dispatcher|process|process-host|loader[\\/]hooks)\.ts/
const ON_DEMAND = /[\\/]zone[\\/](stream[\\/](?!stream\.)|owner[\\/]reload|worker[\\/]loader[\\/]imports)/

/** What nearly all doors load together; the rest is divided by who imports it. */
const GROUPS = [
  // Loaded by the command before all else.
  { name: 'early', priority: 4, test: /[\\/]src[\\/]zone[\\/]owner[\\/](early|spare|main-file)\.ts/ },
  {
    name: 'transport',
    priority: 3,
    // The door rehearses when it is loaded, which the others do not need.
    test: /[\\/]src[\\/]((base|native)[\\/]|transport[\\/](?!index\.ts))/,
  },
  {
    name: 'zone',
    priority: 2,
    test: (path) =>
      /[\\/]src[\\/](bridge|zone)[\\/]/.test(path) && !OF_WORKERS.test(path) && !ON_DEMAND.test(path),
  },
  { name: 'store', priority: 2, test: /[\\/]src[\\/](store|sync)[\\/]/ },
  // What several commands, or a command and its workers, share: a file less for each of them to open.
  {
    name: 'command',
    priority: 2,
    test: /src[\\/]cli[\\/](arguments|errors|resolve|soon|run[\\/](clocks|cutoff|job|journal|records))\.ts/,
  },
  { name: 'fiber', priority: 1, test: /[\\/]src[\\/]fiber[\\/](?!remote[\\/]remote\.ts)/ },
]

/** Packages that lie in lib as one file each: the package, its module, and packages that this contains. */
const SHORTENED = {
  acorn: ['acorn', 'dist/acorn.mjs'],
  busboy: ['@fastify/busboy', 'index.js'],
  glob: ['tinyglobby', 'dist/index.mjs', 'fdir', 'picomatch'],
}

/** The bundler's module that defines exports. */
const HELPERS = '\0rolldown/runtime.js'

/** What lib was made from, as a hash. */
const STAMP = join(LIB, '.made-from')

/** Bundle src if it changed, and remove what an earlier run left. */
export async function bundle() {
  const texts = sources()
  compressEngine()
  for (const [name, input] of Object.entries(SHORTENED)) await shorten(name, input)
  const stamp = stampOf(texts)
  if (contentOf(STAMP) === stamp) return
  const options = { codeSplitting: { groups: GROUPS } }
  const doorsOf = doors()
  const entries = [...new Set([...[...doorsOf, ...Object.keys(KEPT)].map(sourceOf), ...loadedByUrl(texts)])]
  const entryOf = (name) => entryIn(name, doorsOf)
  const { minifySync, parseAst, output } = await bundled(entries, options, {}, entryOf)
  // Its helpers are all that lib has of others' code beside swc and what is shortened.
  copyFileSync(inRoot('node_modules', 'rolldown', 'LICENSE'), join(LIB, 'rolldown.LICENSE'))
  write(LIB, output, (name, code) => asciiOf(withoutSpaces(name, code, minifySync, parseAst)))
  await bundleTypes()
  writeFileSync(STAMP, stamp)
}

/** The modules of src with their texts, without tests. */
export function sources() {
  const paths = filesBelow(inRoot('src'), (path) => path.endsWith('.ts') && !path.includes('.test.'))
  return new Map(paths.map((path) => [path, readFileSync(path, 'utf8')]))
}

/** Where lib has an entry. @param {string} name Its path below src, without its ending. */
function entryIn(name, doorsOf) {
  return KEPT[name] ?? (doorsOf.includes(name) ? inLib(name) : `chunks/${name.replaceAll('/', '-')}`)
}

/**
 * Bundle modules that keep their paths.
 * @param {(name: string) => string} entryOf Another path for an entry.
 */
export async function bundled(entries, options, input = {}, entryOf = (name) => name) {
  const src = inRoot('src')
  const nameOf = (path) => relative(src, path).split(sep).join('/').replace(/\.ts$/, '')
  const names = new Set(entries.map(nameOf))
  // Messages have examples that look the same.
  const chunkOf = (name) => (names.has(name) ? entryOf(name) : name)
  // Imported here: the set-up installs it.
  const [{ rolldown }, { parseAst }, { minifySync }] = await Promise.all([
    import('rolldown'),
    import('rolldown/parseAst'),
    import('rolldown/utils'),
  ])
  const build = await rolldown({
    input: Object.fromEntries(entries.map((path) => [entryOf(nameOf(path)), path])),
    platform: 'node',
    external: /^[^./\0]/,
    plugins: [builtins, moduleUrls(nameOf, chunkOf, parseAst)],
    transform: { target: 'es2022' },
    ...input,
  })
  const { output } = await build.generate({
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name].js',
    comments: false,
    ...options,
  })
  await build.close()
  checkBuiltins(output)
  checkOwn(output, src)
  return { output, minifySync, parseAst }
}

/** What strips types on Nodes that do not, for src/zone/worker/loader/strip.ts; compressed to a sixth. */
function compressEngine() {
  const folder = inRoot('node_modules', '@swc', 'wasm-typescript')
  const [engine, license] = ['wasm.js', 'LICENSE'].map((name) => join(folder, name))
  const compressed = join(LIB, 'swc.js.br')
  if (isMade(compressed, engine)) return
  mkdirSync(LIB, { recursive: true })
  // Its licence is that of the package, which has the text.
  const [, owner] = /Apache License\s+Version 2\.0[^]*(Copyright \d.+)/.exec(readFileSync(license, 'utf8'))
  writeFileSync(join(LIB, 'swc.LICENSE'), `${owner}\nApache License 2.0: see the file LICENSE of corespun.\n`)
  writeFileSync(compressed, compress(apart(readFileSync(engine, 'utf8'))))
}

/** As small as it gets. */
function compress(bytes) {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24 }
  return brotliCompressSync(bytes, { params })
}

/** Whether a file was made after its source and this recipe. */
function isMade(path, source) {
  const [made, ...before] = [path, source, import.meta.filename].map(
    (each) => statSync(each, { throwIfNoEntry: false })?.mtimeMs ?? 0,
  )
  return before.every((ms) => made >= ms)
}

/** The engine with its WebAssembly behind its code: as base64 inside of it, it compresses a third worse. */
function apart(engine) {
  const parts = engine.split(/Buffer\.from\('([A-Za-z0-9+/=]+)', 'base64'\)/)
  if (parts.length !== 3)
    throw new Error('@swc/wasm-typescript no longer has its WebAssembly as one base64 literal')
  const code = Buffer.from(`${parts[0]}module.wasm${parts[2]}`)
  const length = Buffer.alloc(4)
  length.writeUInt32LE(code.length)
  return Buffer.concat([length, code, Buffer.from(parts[1], 'base64')])
}

/**
 * A package as one file, which `requireShortened` loads (src/base/runtime.ts): of acorn 6 % is
 * left, of the others 2 and 6 %, and an install has fewer packages.
 */
async function shorten(name, [packageName, module, ...contained]) {
  const folders = [packageName, ...contained].map((each) => inRoot('node_modules', each))
  const [input, shortened] = [join(folders[0], module), join(LIB, `${name}.cjs.br`)]
  if (isMade(shortened, input)) return
  const { rolldown } = await import('rolldown')
  const build = await rolldown({ input, platform: 'node' })
  const { output } = await build.generate({ format: 'cjs', minify: true })
  await build.close()
  const foreign = output[0].moduleIds.filter(
    (id) => id !== HELPERS && !folders.some((folder) => id.replace(/^\0/, '').startsWith(folder + sep)),
  )
  if (foreign.length > 0) throw new Error(`${name} contains modules without a licence: ${foreign.join(', ')}`)
  const licences = folders.map((folder) => readFileSync(join(folder, 'LICENSE'), 'utf8').trimEnd())
  mkdirSync(LIB, { recursive: true })
  writeFileSync(join(LIB, `${name}.LICENSE`), `${licences.join('\n\n')}\n`)
  writeFileSync(shortened, compress(output[0].code))
}

function stampOf(texts) {
  const hash = createHash('sha256')
  const own = [import.meta.filename, join(import.meta.dirname, 'types.mjs')]
  for (const path of [...own, inRoot('package.json'), inRoot('package-lock.json')])
    hash.update(readFileSync(path))
  for (const [path, text] of texts) hash.update(path).update(text)
  return hash.digest('hex')
}

/** @param {string} name A path below src, without its ending. */
const sourceOf = (name) => inRoot('src', `${name}.ts`)

/** What threads load by URL. Examples in messages and comments look the same, and name no module of ours. */
export function loadedByUrl(texts) {
  const namedIn = ([path, text]) =>
    [...text.matchAll(LOADED_BY_URL)].map(([, name]) => `${join(dirname(path), name)}.ts`)
  return [...texts].flatMap(namedIn).filter((path) => texts.has(path))
}

/**
 * Each module takes the names that it imports and no others: exports of Node's modules such as `MIMEType` are
 * getters, and what one chunk needs must not be loaded by all that share a module with it.
 */
const builtins = {
  name: 'builtins',
  transform: (code, module) => ({
    code: code.replace(BUILTIN_IMPORT, (_, clause, id) => {
      const taken = `process.getBuiltinModule('${id}')`
      // Of the bundler's helpers few are left, and what the others need must not be loaded.
      return module === HELPERS
        ? `const ${takenBy(clause).replace(/[{ }]/g, '')} = /* @__PURE__ */ (() => ${taken}.createRequire)()`
        : `const ${takenBy(clause)} = ${taken}${lineEndsOf(clause)}`
    }),
    map: null,
  }),
}

/** The clause of an import as that of a declaration, without the names of types. */
function takenBy(clause) {
  const listed = /\{([^}]*)\}/.exec(clause)?.[1].split(',')
  if (listed === undefined) return clause
  const values = listed.map((name) => name.trim()).filter((name) => !/^(type |$)/.test(name))
  return `{ ${values.join(', ').replaceAll(' as ', ': ')} }`
}

/** For the source map, every statement remains in its line. */
const lineEndsOf = (clause) => '\n'.repeat(clause.split('\n').length - 1)

/** What `builtins` has not found. */
function checkBuiltins(output) {
  const left = output.filter(({ imports = [] }) => imports.some((id) => id.startsWith('node:')))
  if (left.length === 0) return
  const names = left.map(({ fileName }) => fileName).join(', ')
  throw new Error(`modules of Node must be taken by process.getBuiltinModule, and are imported in ${names}`)
}

/** A package that is bundled would need its licence beside it. */
function checkOwn(output, src) {
  const ids = output.flatMap(({ moduleIds = [] }) => moduleIds)
  const foreign = ids.filter((id) => !id.startsWith(src) && id !== HELPERS)
  if (foreign.length > 0) throw new Error(`modules of others are bundled: ${foreign.join(', ')}`)
}

/**
 * @param {(path: string) => string} nameOf A source's path below src, without its ending.
 * @param {(name: string) => string} chunkOf The path of what is loaded by its URL.
 */
function moduleUrls(nameOf, chunkOf, parseAst) {
  return {
    name: 'module-urls',
    transform(text, id) {
      if (!text.includes('import.meta.url')) return null
      const folder = posix.dirname(nameOf(id))
      const code = text.replace(LOADED_BY_URL, (whole, path) => {
        const name = posix.join(folder, path)
        return chunkOf(name) === name ? whole : whole.replace(path, posix.relative(folder, chunkOf(name)))
      })
      const location = `${LOCATION}('${nameOf(id)}.js')`
      const found = metaUrls(parseAst(code, { lang: 'ts' })).sort((a, b) => b.start - a.start)
      const replace = (text, { start, end }) => text.slice(0, start) + location + text.slice(end)
      const located = found.reduce(replace, code)
      return { code: located, map: null }
    },
    renderChunk(code, chunk) {
      const location = new RegExp(`${LOCATION}\\(["']([^"']+)["']\\)`, 'g')
      const from = posix.dirname(chunk.fileName)
      const located = code.replace(location, (_, name) =>
        name === chunk.fileName
          ? 'import.meta.url'
          : `new URL('${posix.relative(from, name)}', import.meta.url).href`,
      )
      return { code: located, map: null }
    },
  }
}

/** Where `import.meta.url` is code; in messages and comments it stays as it is. */
function metaUrls(node) {
  if (node === null || typeof node !== 'object') return []
  if (node.type === 'MemberExpression' && node.object.type === 'MetaProperty' && node.property.name === 'url')
    return [node]
  return Object.values(node).flatMap(metaUrls)
}

/**
 * Names of functions and classes are kept, and only the ends of statements are ends of lines, so that a
 * frame of a stack names both. Short names of variables make an install a quarter of a megabyte smaller, line
 * ends in place of semicolons 20 kB.
 */
function withoutSpaces(name, code, minifySync, parseAst) {
  const mangle = { keepNames: { function: true, class: true } }
  const shape = { compress: false, mangle, codegen: { removeWhitespace: true } }
  const { code: dense, errors } = minifySync(name, code, shape)
  if (errors.length > 0) throw new Error(`${name}: ${errors.map(({ message }) => message).join(', ')}`)
  const program = parseAst(dense)
  const ends = [...new Set(endsOf(program))].sort((a, b) => a - b)
  const open = new Set(endsWithout(program))
  // Nothing is called between the end of a statement and that of its block.
  const lines = [0, ...ends.filter((end) => dense[end] !== '}')]
  const text = lines
    .map((from, index) => {
      const to = lines[index + 1]
      return dense.slice(from, open.has(to) && /[\w$#]/.test(dense[to]) ? to - 1 : to)
    })
    .join('\n')
  if (shapeOf(parseAst(text)) !== shapeOf(program)) throw new Error(`${name}: other statements`)
  return text
}

/** Statements and fields that a line end ends as well, before what begins with a word or a private name. */
const OPEN =
  /^(Expression|Return|Throw|Break|Continue)Statement$|^(Variable|Import)Declaration$|^PropertyDefinition$/
/** Those that end with another one, unless that is a block. */
const AROUND = /^(If|For|ForIn|ForOf|While|Labeled)Statement$/

/** Where those end, with a semicolon. */
function endsWithout(node) {
  if (node === null || typeof node !== 'object') return []
  const lists = [node.body, node.type === 'SwitchCase' && node.consequent].filter(Array.isArray)
  const own = lists.flat().filter((each) => OPEN.test(lastOf(each).type))
  return [...own.map(({ end }) => end), ...Object.values(node).flatMap(endsWithout)]
}

function lastOf(statement) {
  if (!AROUND.test(statement.type)) return statement
  return lastOf(statement.alternate ?? statement.consequent ?? statement.body)
}

/** A program without where its parts are. */
function shapeOf(program) {
  return JSON.stringify(program, (key, value) =>
    key === 'start' || key === 'end' ? undefined : typeof value === 'bigint' ? String(value) : value,
  )
}

/** Where the statements of blocks and the members of classes end. */
function endsOf(node) {
  if (node === null || typeof node !== 'object') return []
  const lists = [node.body, node.type === 'SwitchCase' && node.consequent].filter(Array.isArray)
  return [...lists.flat().map(({ end }) => end), ...Object.values(node).flatMap(endsOf)]
}

/** One character beyond Latin-1 would make the text of the whole chunk two bytes wide. */
function asciiOf(code) {
  return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** @param {string} folder @param {object[]} output Of the bundler. */
export function write(folder, output, finished = (name, code) => code) {
  const textOf = (file) =>
    'code' in file ? finished(file.fileName, file.code.replace(NOTHING_IMPORTED, '')) : String(file.source)
  const made = output.map((file) => [join(folder, file.fileName), textOf(file)])
  writeAll(folder, /\.(js|map)$/, new Map(made))
}
