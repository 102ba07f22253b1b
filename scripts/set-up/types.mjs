/**
 * The types of the doors, bundled from dist to lib: sixteen files of what the doors reach, with its comments.
 *
 * tsc writes a file for each module: two thirds of their text, in fifty folders, is about what nobody can
 * import, and an editor opens all of them. Here each area has one file, which the doors export from. Areas
 * and not one file for all, because names that two areas have would be numbered.
 */
import { join } from 'node:path'
import { doors, inLib, inRoot, LIB, writeAll } from './paths.mjs'

const AREAS = ['arrow', 'fiber', 'http', 'napa', 'store', 'stream', 'sync', 'transport', 'zone']
/** A door as a member of another one: bundled, it would become a namespace with a name of its own. */
const DOOR_AS_MEMBER = /^export \* as \w+ from '\.\/\w+\/index\.ts';$/gm
/** Examples in comments: a sixth of all text. The site has them. */
const EXAMPLE = /^(?: *\*\n)? *\* (?:@example.*\n *\* )?```[^]*?```\n/gm
/** Where the bundler has a declaration from, and comments of whole modules, which are about none. */
const ABOUT_FILES = /^\/\/ dist\/.*\n|^\/\*\*(?:(?!\*\/)[^])*\*\/\n(?=\/\*\*)/gm
/** Where a paragraph of a comment is wrapped, which no editor shows; not where one begins. */
const WRAPPED = /(?<!\s\*)\n\s*\* (?=[^@|\d\s-])/g
/** A line ends what it ends without one, too. Not in comments. */
const SEMICOLON = /^(?!\s*(?:\*|\/\*))(.*);$/gm
/** The end of a comment on a line of its own. */
const CLOSING = /\n\s*\*\/$/gm
/** A class of errors before its codes, which have its name. */
const THROWN = /(@throws) \{\w+\}(?= `[A-Z]+_)/g
/** What a module needs of TypeScript's own types, and of Node's. */
const REFERENCE = /^\/\/\/ <reference .*$/gm

/** Bundle what tsc has written. */
export async function bundleTypes() {
  // Imported here: the set-up installs them.
  const [{ rolldown }, { dts }] = await Promise.all([import('rolldown'), import('rolldown-plugin-dts')])
  const references = new Set()
  const members = new Map()
  const typesOnly = new Map()
  const leftOut = {
    name: 'left-out',
    transform(code, id) {
      for (const reference of code.match(REFERENCE) ?? []) references.add(reference)
      members.set(id, (code.match(DOOR_AS_MEMBER) ?? []).join('\n').replaceAll("/index.ts'", ".js'"))
      typesOnly.set(id, namesOfTypes(code))
      return code.replace(DOOR_AS_MEMBER, '')
    },
  }
  const build = await rolldown({
    input: Object.fromEntries(doors().map((door) => [`${inLib(door)}.d`, inRoot('dist', `${door}.d.ts`)])),
    cwd: inRoot(),
    platform: 'node',
    checks: { pluginTimings: false },
    external: /^[^./\0]/,
    preserveEntrySignatures: 'allow-extension',
    plugins: [leftOut, dts({ dtsInput: true, tsconfig: false })],
  })
  const ofArea = (name) => new RegExp(`[\\\\/]dist[\\\\/]${name}[\\\\/](?!index\\.d\\.ts)`)
  const groups = AREAS.map((name) => ({ name, test: ofArea(name) }))
  const { output } = await build.generate({
    entryFileNames: '[name].ts',
    chunkFileNames: 'types/[name].d.ts',
    minifyInternalExports: false,
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [...groups, { name: 'base', test: /./, minShareCount: 2 }],
    },
  })
  await build.close()
  const textOf = ({ facadeModuleId: id, code }) => {
    if (id === null) return [...references, code].join('\n')
    return `${withTypesOnly(code.trimEnd(), typesOnly.get(id))}\n${members.get(id)}\n`.replace(/\n+$/, '\n')
  }
  const short = (text) =>
    text
      .replace(EXAMPLE, '')
      .replace(ABOUT_FILES, '')
      .replace(WRAPPED, ' ')
      .replace(SEMICOLON, '$1')
      .replace(CLOSING, ' */')
      .replace(THROWN, '$1')
      .replace(/^(?: {2})+/gm, (all) => '\t'.repeat(all.length / 2))
  const made = output.map((file) => [join(LIB, file.fileName), short(textOf(file))])
  writeAll(LIB, /\.d\.ts$/, new Map(made))
}

/** What a door exports as types alone; a class among them cannot be imported as a value. */
function namesOfTypes(code) {
  const lists = [...code.matchAll(/^export (type )?\{([^}]*)\}/gm)]
  return new Set(
    lists.flatMap(([, isType, list]) => {
      const names = list.split(',').map((name) => name.trim())
      const types = isType === undefined ? names.filter((name) => name.startsWith('type ')) : names
      return types.map((name) => /\S+$/.exec(name)?.[0])
    }),
  )
}

/** The bundler keeps `type` before a name only where its module has it. */
function withTypesOnly(code, names) {
  return code.replace(/^export \{ (.*) \};$/gm, (_, list) => {
    const mark = (name) => (names.has(/\S+$/.exec(name)[0]) ? name.replace(/^(type )?/, 'type ') : name)
    return `export { ${list.split(', ').map(mark).join(', ')} };`
  })
}
