/**
 * The pages of `npm run docs` before TypeDoc gets them, and what models read.
 *
 * TypeDoc itself fails where a link or an anchor between pages, or a name of the API, leads nowhere; the step
 * `docs` of `npm run test:all` runs it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readReports, readTexts } from '../../scripts/docs/main.mjs'
import {
  codePage,
  forModels,
  groupPage,
  groupsOf,
  namesOf,
  staged,
  summaryOf,
} from '../../scripts/docs/pages.mjs'
import { blocksIn } from './blocks.mjs'

const texts = readTexts()
const groups = groupsOf(texts)
const LIST = '- **Start**: [one](one.md), [two](../../TWO.md), [needs](needs.md).'
const planted = new Map([
  ['README.md', `# A: b\n\nIntro.\n\n## Next\n`],
  ['docs/guide/needs.md', `# Needs\n\nAll.\n\n## All pages\n\n${LIST}\n\nEnd.\n`],
  ['docs/guide/one.md', '# One: the first\n\n```ts\none()\n```\n'],
  ['TWO.md', '# Two\n\nThe [second](docs/guide/one.md). More\nof it.\n\nEnd.\n'],
  ['docs/design/three.md', '# The `three`\n\n- The third\n  of all.\n- Another.\n'],
])

test('docs/guide/needs.md has five groups of pages, and no page for users is in none of them', () => {
  const titles = ['Start', 'Concepts', 'Coding', 'Operating', 'Reference', 'Development']
  assert.deepEqual(
    groups.map(({ title }) => title),
    titles,
  )
  const message = 'docs/guide/needs.md links docs/guide/lost.md in no group of "All pages"'
  assert.throws(() => groupsOf(new Map([...planted, ['docs/guide/lost.md', '# Lost\n']])), {
    name: 'Stop',
    message,
  })
})

test('a group has a page with what each of its pages is about', () => {
  const [start, development] = groupsOf(planted).map((group) => groupPage(group, planted))
  const children = '  "One": ../docs/guide/one.md\n  "Two": ../TWO.md\n  "Needs": ../docs/guide/needs.md\n'
  const items = '[One](../docs/guide/one.md): The first\n- [Two](../TWO.md): The second.\n'
  const head = `---\ntitle: Start\nchildren:\n${children}---\n# Start\n\n`
  assert.equal(start, `${head}- ${items}- [Needs](../docs/guide/needs.md): All.\n`)
  assert.match(development, /- \[Design: The three\]\(\.\.\/docs\/design\/three\.md\): The third of all\.\n$/)
  assert.throws(() => summaryOf('# Four\n\n```ts\n'), {
    name: 'Stop',
    message: '"Four" does not open with a sentence',
  })
})

test('code that is linked is a page; names of the API are links, outside of code, heads and links', () => {
  const names = namesOf([
    ['corespun', 'export class StoreError extends Error {\nexport class Twice {\nexport class Only {\n'],
    [
      'corespun/store',
      'export class StoreError extends Error {\nexport function get(): void\nexport class Twice {\n',
    ],
    ['corespun/zone', 'export const currentTask: () => Task\nexport abstract class Twice {\n'],
  ])
  const expected = { StoreError: 'corespun/store', Only: 'corespun', currentTask: 'corespun/zone' }
  assert.deepEqual(Object.fromEntries(names), expected)
  const code = []
  const page = (path, text) => staged(path, text, names, (linked) => code.push(linked))
  const inCode = '```ts\n`Only` [a](b.ts)\n```\n'
  const same = `# \`Only\`\n\n\`get\` \`Twice\` [\`Only\`](x.md#a) [e](https://e/e.ts) ![i](i.svg)\n${inCode}`
  assert.equal(page('docs/guide/a.md', same), same)
  const linked = '{@linkcode corespun/zone!currentTask | currentTask()} [a](../../b/c.ts.md#d)'
  assert.equal(page('docs/guide/a.md', '`currentTask()` [a](../../b/c.ts#d)'), linked)
  assert.equal(page('docs/STYLE.md', '`Only`'), '`Only`')
  assert.deepEqual(code, ['b/c.ts'])
  assert.equal(
    codePage('b/c.ts', 'c()\n'),
    '# b/c.ts\n\nA file of the repository.\n\n```typescript\nc()\n```\n',
  )
  assert.ok(namesOf(readReports()).size > 200)
})

test('llms.txt lists each page, llms-full.txt has each block of the guides with what it prints', () => {
  const [short, full] = forModels(groups, texts)
  assert.match(short, /^# Corespun\n\n> Corespun runs [^\n]+\n\n[^]+?\n\n## Start\n\n- \[/)
  const listed = [...short.matchAll(/^- \[[^\]]+\]\(([^)]+)\): \S/gm)].map(([, path]) => path)
  assert.deepEqual(new Set(['README.md', ...listed]), new Set(texts.keys()))
  const guides = [...texts].filter(([path]) => /^README|^docs\/guide\//.test(path))
  const blocks = guides.flatMap(([path, text]) => blocksIn(path, text))
  const contained = blocksIn('llms-full.txt', full)
  assert.ok(blocks.length > 100, `${blocks.length} blocks`)
  const contents = (list) =>
    list.map(({ language, text, output }) => [language, text, output].join('\n')).sort()
  assert.deepEqual(contents(contained), contents(blocks))
  assert.doesNotMatch(full, /<!-- record:/)
})
