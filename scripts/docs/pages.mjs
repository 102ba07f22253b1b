/**
 * The pages of the site, from the Markdown of the repository.
 *
 * "All pages" of docs/guide/needs.md groups them; nothing else does. Links to code lead to a page that shows
 * it, and names of the API in prose become links. Only strings in and out, so the tests need no disk.
 */
import { posix } from 'node:path'
import { Stop } from '../set-up/index.mjs'
import { withoutMarks } from '../pack/documents.mjs'

/** Its last section has all pages in groups. */
const LIST = 'docs/guide/needs.md'
/** A head that has behind a colon what the page is about, as in "Zones: work on other cores". */
const HALVES = /^(?!Quick start)(.+?): (.+)$/
const LINK = /(?<!!)\[([^\]]+)\]\((?![a-z]+:)([^)\s#]+)(#[^)\s]*)?\)/g
/** A name of the API alone in a span of code, which is not the text of a link. */
const NAME = /(?<!\[)`([A-Za-z]\w+)(?:\(\))?`(?!\])/g
/** `map` and `run` mean many functions; a name of two words, or of a class, means one. */
const DISTINCT = /^[A-Z]|[a-z][A-Z]/

export const isForUsers = (path) => /^README|^docs\/guide\//.test(path)

/**
 * The groups of {@link LIST}, then one of what only contributors read. `texts` are by path.
 * @throws {Stop} If a page for users is in no group.
 */
export function groupsOf(texts) {
  const pageOf = (path) => {
    const head = headOf(texts.get(path)).replaceAll('`', '')
    const name = HALVES.exec(head)?.[1] ?? head
    return { path, name: path.startsWith('docs/design/') ? `Design: ${name}` : name }
  }
  const [, ...items] = texts.get(LIST).split('\n## All pages\n')[1].split(/^- /m)
  const groups = items.map((item) => ({
    title: /^\*\*(.+?)\*\*/.exec(item)[1],
    pages: [...item.matchAll(LINK)].map(([, , path]) => pageOf(posix.join(posix.dirname(LIST), path))),
  }))
  const listed = new Set(groups.flatMap(({ pages }) => pages.map(({ path }) => path)))
  const others = [...texts.keys()].filter((path) => path !== 'README.md' && !listed.has(path))
  const lost = others.find((path) => !/^CONTRIBUTING|^docs\/(?!guide\/)/.test(path))
  if (lost !== undefined) throw new Stop(`${LIST} links ${lost} in no group of "All pages"`)
  return [...groups, { title: 'Development', pages: others.map(pageOf) }]
}

const headOf = (text) => /^# (.+)$/m.exec(text)[1]

/** What a page is about: the second half of its head, or the first sentence below. */
export function summaryOf(text) {
  const [, , half] = HALVES.exec(headOf(text)) ?? []
  if (half !== undefined) return half[0].toUpperCase() + half.slice(1)
  const [, paragraph] = /^# .+\n\n(?!```|[|#])(?:- )?([^]+?)(?=\n- |\n\n)/.exec(text) ?? []
  if (paragraph === undefined) throw new Stop(`"${headOf(text)}" does not open with a sentence`)
  const words = withoutMarks(paragraph)
    .replace(/\[([^\]]+)\]\([^)]+\)/g, '$1')
    .replace(/\s+/g, ' ')
  return /^.+?\.(?= [A-Z`*]|$)/.exec(words)?.[0] ?? words
}

/**
 * The entry point of each name that only one of them has.
 * @param {[string, string][]} reports Entry points, such as `corespun/http`, and their API Extractor reports.
 */
export function namesOf(reports) {
  const names = new Map()
  for (const [entry, text] of reports) {
    for (const [, name] of text.matchAll(
      /^export (?:abstract )?(?:class|const|function|interface|type) (\w+)/gm,
    ))
      if (DISTINCT.test(name)) names.set(name, [...(names.get(name) ?? []), entry])
  }
  // The root exports again what its parts do.
  const partsOf = (entries) =>
    [...new Set(entries)].filter((entry, _, { length }) => length === 1 || entry !== 'corespun')
  const own = [...names].map(([name, entries]) => [name, partsOf(entries)])
  return new Map(own.flatMap(([name, entries]) => (entries.length === 1 ? [[name, entries[0]]] : [])))
}

/**
 * A page as TypeDoc gets it.
 * @param {Map<string, string>} names Of `namesOf`.
 * @param {(path: string) => void} onCode Receives the files of code that it links.
 */
export function staged(path, text, names, onCode) {
  let isCode = false
  const toCode = (link, words, target, section = '') => {
    if (target.endsWith('.md')) return link
    onCode(posix.join(posix.dirname(path), target))
    return `[${words}](${target}.md${section})`
  }
  const toName = (span, name) =>
    names.has(name) ? `{@linkcode ${names.get(name)}!${name} | ${span.slice(1, -1)}}` : span
  const lines = withoutMarks(text)
    .split('\n')
    .map((line) => {
      if (line.startsWith('```')) isCode = !isCode
      if (isCode || /^#|^```/.test(line)) return line
      const linked = line.replace(LINK, toCode)
      return isForUsers(path) ? linked.replace(NAME, toName) : linked
    })
  return lines.join('\n')
}

/** A page that shows a file of code. */
export function codePage(path, text) {
  const language = { ts: 'typescript', mjs: 'javascript' }[path.split('.').at(-1)] ?? 'text'
  return `# ${path}\n\nA file of the repository.\n\n\`\`\`${language}\n${text}\`\`\`\n`
}

/** A page with the list of its group. */
export function groupPage({ title, pages }, texts) {
  const children = pages.map(({ name, path }) => `  ${JSON.stringify(name)}: ../${path}`)
  const items = pages.map(({ name, path }) => `- [${name}](../${path}): ${summaryOf(texts.get(path))}`)
  return `---\ntitle: ${title}\nchildren:\n${children.join('\n')}\n---\n# ${title}\n\n${items.join('\n')}\n`
}

/**
 * `llms.txt`, by the form of llmstxt.org, and `llms-full.txt`: README.md and all guides, with their programs
 * and what these print.
 */
export function forModels(groups, texts) {
  const readme = texts.get('README.md')
  const listOf = ({ title, pages }) => {
    const items = pages.map(({ name, path }) => `- [${name}](${path}): ${summaryOf(texts.get(path))}`)
    return `## ${title === 'Development' ? 'Optional' : title}\n\n${items.join('\n')}\n`
  }
  const [, intro] = /^# .+\n\n([^]+?)\n\n/.exec(readme)
  const full = 'Everything in one file: [llms-full.txt](llms-full.txt). All programs are run by the tests.'
  const head = `# ${headOf(readme)}\n\n> ${intro.replaceAll('\n', ' ')}\n\n${full}\n`
  const guides = ['README.md', ...groups.flatMap(({ pages }) => pages.map(({ path }) => path))]
  const all = guides.filter(isForUsers).map((path) => `<!-- ${path} -->\n\n${withoutMarks(texts.get(path))}`)
  return [[head, ...groups.map(listOf)].join('\n'), all.join('\n')]
}
