/**
 * docs/numbers.svg: the README's table of numbers as bars, a group for each row.
 *
 * It is read from the README, whose figures are those of the records (`npm run check` compares them), so the
 * picture cannot show others; a test of the bench compares the file with what this makes. It has no script,
 * and is as wide as a phone, so that its text needs no zoom there.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { PACKAGE_FOLDER } from '../harness/paths.ts'
import { element, escaped, type Html } from './html.ts'

export const PICTURE = `${PACKAGE_FOLDER}/docs/numbers.svg`

const WIDTH = 400
const TITLE = 20
const BAR = 18
const NAMES = 122
/** Left for the figure behind the longest bar. */
const FIGURES = 86

const STYLE = `text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 }
.own { fill: #0b6b5d }
.other { fill: #b6bec7 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .own { fill: #5fd0bd }
  .other { fill: #57606a }
}`

interface Bar {
  readonly name: string
  readonly figure: string
  readonly value: number
}

/** A figure before its mark, with what precedes it in the cell. */
const FIGURE = /([^<>]*?)([\d.,]*\d [a-zµ]+) <!-- record: \S+ -->/g

/** Write the picture; returns the exit code. */
export function writePicture(): number {
  writeFileSync(PICTURE, picture(readFileSync(`${PACKAGE_FOLDER}/README.md`, 'utf8')))
  console.log(PICTURE)
  return 0
}

/** The picture of the table under "numbers" in a README. */
export function picture(readme: string): string {
  const section = /^## [^\n]*numbers\n([^]*?)(?=^## )/im.exec(readme)?.[1] ?? ''
  const groups = section
    .split('\n')
    .filter((line) => line.startsWith('| ') && line.includes('<!-- record:'))
    .map(groupOf)
  let y = 0
  const parts = groups.flatMap(({ title, bars }) => {
    const most = Math.max(...bars.map(({ value }) => value))
    const shown = [element('text', { x: 0, y: y + TITLE - 6, class: 'title' }, escaped(title))]
    y += TITLE
    for (const [index, bar] of bars.entries()) {
      const width = Math.max(1, Math.round(((WIDTH - NAMES - FIGURES) * bar.value) / most))
      shown.push(...barOf(bar, y, width, index === 0 ? 'own' : 'other'))
      y += BAR
    }
    y += 10
    return shown
  })
  const label = 'Less is better. Corespun is the first bar of each group.'
  const attributes = { xmlns: 'http://www.w3.org/2000/svg', viewBox: `0 0 ${WIDTH} ${y}`, width: WIDTH * 1.5 }
  const style = `<style>${STYLE}</style>` as Html
  return `${element('svg', { ...attributes, role: 'img', 'aria-label': label }, style, parts)}\n`
}

function groupOf(line: string): { readonly title: string; readonly bars: readonly Bar[] } {
  const [what, ...cells] = line.split('|').slice(1, -1)
  const bars = cells.flatMap((cell, index) =>
    [...cell.matchAll(FIGURE)].map(([, before, figure]) => ({
      name: index === 0 ? 'Corespun' : before.replace(/^[\s,;]+/, '').trim(),
      figure,
      value: Number(figure.split(' ')[0].replaceAll(',', '')),
    })),
  )
  return { title: what.replace(/: `.*/, '').trim(), bars }
}

function barOf({ name, figure }: Bar, y: number, width: number, kind: string): Html[] {
  return [
    element('text', { x: NAMES - 6, y: y + BAR - 6, 'text-anchor': 'end' }, escaped(name)),
    element('rect', { x: NAMES, y: y + 2, width, height: BAR - 5, class: kind }),
    element('text', { x: NAMES + width + 5, y: y + BAR - 6 }, escaped(figure)),
  ]
}
