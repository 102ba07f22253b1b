/**
 * The guide and the dashboard name the instruments as they are.
 *
 * Both are files for people and for Grafana, which nothing else reads.
 */
import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'node:test'
import { LISTED } from './instruments.ts'
import { nameOf } from './text.ts'

const GUIDE = new URL('../../docs/guide/', import.meta.url)
/** Of no use beside others that the dashboard shows. */
const UNSHOWN = [
  'nodejs.eventloop.delay.mean',
  'nodejs.eventloop.delay.p50',
  'nodejs.eventloop.delay.max',
  'corespun.arrow.stage.calls',
  'corespun.arrow.stage.time',
  'corespun.napa.number',
  'corespun.napa.rate',
  'corespun.napa.percentile',
  'corespun.thread.external',
  'corespun.store.entries',
  'corespun.lock.free',
  'corespun.fleet.connections',
  'process.uptime',
  'corespun.threads',
]

test('the dashboard shows each instrument by its name and attributes', () => {
  const text = readFileSync(new URL('metrics-grafana.json', GUIDE), 'utf8')
  const { panels } = JSON.parse(text) as {
    panels: { id: number; title: string; targets?: { expr: string; legendFormat: string }[] }[]
  }
  const known = new Map(
    LISTED.flatMap((one) => {
      const suffixes = { counter: ['_total'], gauge: [''], histogram: ['_bucket', '_sum', '_count'] }[
        one.kind
      ]
      return suffixes.map((suffix) => [nameOf(one) + suffix, one] as const)
    }),
  )
  const shown = new Set<string>()
  for (const { title, targets = [] } of panels)
    for (const { expr, legendFormat } of targets) {
      const labels = new Set(['instance'])
      for (const [, name, selector] of expr.matchAll(/(\w+)\{([^}]*)\}/g)) {
        const one = known.get(name)
        assert.ok(one !== undefined, `${name} in ${title}`)
        shown.add(one.name)
        for (const attribute of one.attributes) labels.add(attribute.replaceAll('.', '_'))
        const asked = selector.replace('job=~"$job",instance=~"$instance"', '')
        for (const [, label] of asked.matchAll(/,(\w+)!?="/g))
          assert.ok(labels.has(label), `${label} in ${title}`)
      }
      const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, names]) => names.split(', '))
      const named = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label)
      for (const label of [...grouped, ...named])
        assert.ok(label === 'le' || labels.has(label), `${label} in ${title}`)
      if (grouped.length > 0)
        for (const label of named) assert.ok(grouped.includes(label), `${label} in ${title}`)
    }
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  assert.deepEqual(
    LISTED.map(({ name }) => name).filter((name) => !shown.has(name)),
    UNSHOWN,
  )
})

test('the guide has a row for each instrument', () => {
  const guide = readFileSync(new URL('metrics.md', GUIDE), 'utf8')
  const rows = [...guide.matchAll(/^\| `([^`]+)` \| `([^`]+)` \| (\w+), (\S+) \| ([^|]*) \|/gm)]
  const code = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ')
  assert.deepEqual(
    rows.map(([, name, prometheus, kind, unit, attributes]) => [
      name,
      prometheus,
      kind,
      unit,
      attributes.trim(),
    ]),
    LISTED.map((one) => {
      const total = one.kind === 'counter' ? '_total' : ''
      return [one.name, nameOf(one) + total, one.kind, one.unit, code(one.attributes)]
    }),
  )
})

test('the guide has a row for each channel of events', () => {
  const source = fileURLToPath(new URL('../../src/', import.meta.url))
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
  const published = files
    .filter((file) => file.endsWith('.ts') && !file.includes('.test.'))
    .flatMap((file) => {
      const text = readFileSync(join(source, file), 'utf8')
      return [...text.matchAll(/\bchannel\('(corespun:[\w:]+)'\)/g)].map(([, name]) => name)
    })
  const guide = readFileSync(new URL('events.md', GUIDE), 'utf8')
  const rows = guide.split('\n').filter((line) => line.startsWith('| `corespun:'))
  const listed = rows.flatMap((row) => row.split('|')[1].match(/corespun:[\w:]+/g) ?? [])
  assert.deepEqual(listed.sort(), [...new Set(published)].sort())
})
