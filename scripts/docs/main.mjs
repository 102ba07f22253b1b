/**
 * The site: guides and API reference as HTML pages that need no server, by TypeDoc from Markdown and the doc
 * comments of what package.json exports; `llms.txt` and the Markdown that it lists lie beside them.
 *
 * TypeDoc needs a TypeScript whose compiler is written in JavaScript, which version 7 is not. It is installed
 * below .set-up/ with a TypeScript of its own, never into node_modules. A warning is an error: a link without
 * a target, a public type that is not exported, a parameter that does not exist.
 */
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { doors, filesBelow, inRoot, installCopy, MEMORY, ROOT, Stop } from '../set-up/index.mjs'
import { emptyReport, shown } from '../test/report.mjs'
import { codePage, forModels, groupPage, groupsOf, isForUsers, namesOf, staged } from './pages.mjs'

const FOLDER = join(MEMORY, 'docs')
/** The pages as TypeDoc gets them. */
const STAGE = join(MEMORY, 'site')
/** Where the site is written; git ignores it. */
const SITE = inRoot('site')
/** Other pages come behind the guides in the search: typedoc.json puts the group "Documents" first. */
const LATER = '---\ngroup: Other\n---\n'
const PICTURE = 'docs/numbers.svg'
const DOCUMENTS = ['README.md', 'CHANGELOG.md', 'SECURITY.md', 'SUPPORT.md', 'CONTRIBUTING.md', 'docs']

/** The Markdown of the repository, by path. */
export function readTexts() {
  const paths = DOCUMENTS.flatMap((name) => filesBelow(inRoot(name), (path) => path.endsWith('.md')))
  const nameOf = (path) => path.slice(ROOT.length).replaceAll('\\', '/')
  return new Map(paths.map((path) => [nameOf(path), readFileSync(path, 'utf8')]))
}

/** The entry points, and their reports of API Extractor. */
export function readReports() {
  return doors().map((door) => {
    const name = door.replace(/\/index$/, '')
    const report = readFileSync(inRoot('api', `${name.replaceAll('/', '-')}.api.md`), 'utf8')
    return [name === 'index' ? 'corespun' : `corespun/${name}`, report]
  })
}

/**
 * Write the site.
 * @returns {Promise<number>} 0 when TypeDoc found nothing to warn of.
 */
export async function writeDocs(report = emptyReport()) {
  const texts = readTexts()
  const groups = groupsOf(texts)
  const documents = stage(texts, groups)
  await installCopy('TypeDoc', inRoot('scripts', 'docs'), FOLDER)
  const typedoc = join(FOLDER, 'node_modules', 'typedoc', 'bin', 'typedoc')
  // The root last: a name belongs to the entry point of its part.
  const [root, ...parts] = doors()
  const entries = [...parts, root].flatMap((door) => ['--entryPoints', inRoot('src', `${door}.ts`)])
  const pages = documents.flatMap((path) => ['--projectDocuments', path])
  const own = (name) => inRoot('scripts', 'docs', name)
  const args = ['--options', own('typedoc.json'), '--tsconfig', own('tsconfig.json')]
  const input = [...args, ...entries, '--readme', join(STAGE, 'README.md'), ...pages]
  const code = await shown('docs', report, process.execPath, [typedoc, ...input, '--out', SITE])
  const lost = filesBelow(join(SITE, 'media'), (path) => path.endsWith('.md'))
  if (lost.length > 0) throw new Stop(`linked, but not pages of the site: ${lost.join(', ')}`)
  const [short, full] = forModels(groups, texts)
  for (const [path, text] of [['llms.txt', short], ['llms-full.txt', full], ...texts]) write(SITE, path, text)
  copyFileSync(inRoot(PICTURE), join(SITE, PICTURE))
  return code
}

/** @returns {string[]} The pages of the groups, whose children are all others. */
function stage(texts, groups) {
  rmSync(STAGE, { recursive: true, force: true })
  const names = namesOf(readReports())
  const code = new Set()
  for (const [path, text] of texts) {
    const page = staged(path, text, names, (linked) => code.add(linked))
    write(STAGE, path, isForUsers(path) ? page : LATER + page)
  }
  for (const path of code) {
    texts.set(path, readFileSync(inRoot(path), 'utf8'))
    texts.set(`${path}.md`, codePage(path, texts.get(path)))
    write(STAGE, `${path}.md`, LATER + texts.get(`${path}.md`))
    groups.at(-1).pages.push({ name: path, path: `${path}.md` })
  }
  copyFileSync(inRoot(PICTURE), join(STAGE, PICTURE))
  return groups.map((group) => write(STAGE, `groups/${group.title}.md`, groupPage(group, texts)))
}

function write(folder, path, text) {
  const file = join(folder, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  return file
}
