/**
 * Reads the text format of Prometheus as strictly as the specification of OpenMetrics asks.
 *
 * Independent of the code that writes it: names, types, escapes and the rules of histograms are checked.
 */
import assert from 'node:assert/strict'

/** Samples by name and labels: `name{a="b"}`, labels in their order. */
export type Samples = ReadonlyMap<string, number>

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*?)\})? (\S+)(?: # \{(.*)\} (\S+) (\S+))?$/
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: ['_total'],
  gauge: [''],
  histogram: ['_bucket', '_sum', '_count'],
}

/** @param isOpen Whether it is OpenMetrics. */
export function read(text: string, isOpen: boolean): Samples {
  assert.ok(text.endsWith(isOpen ? '\n# EOF\n' : '\n'), 'the end of the text')
  const samples = new Map<string, number>()
  const families = new Set<string>()
  let family = ''
  let type = ''
  for (const line of text.trimEnd().split('\n')) {
    if (line.startsWith('#')) {
      const [, word, name, rest = ''] = line.split(/ (?!\S* \S* \S.* )/, 4)
      if (line === '# EOF') continue
      const [, kind, declared, more] = /^# (HELP|TYPE|UNIT) (\S+) (.+)$/.exec(line) ?? assert.fail(line)
      assert.match(declared, NAME, `${word} ${name} ${rest}`)
      if (kind === 'HELP') {
        assert.ok(!families.has(declared), `${declared} is declared once`)
        families.add(declared)
        family = declared
      }
      assert.equal(declared, family, 'the lines of a family are together')
      if (kind === 'TYPE') type = more
      if (kind === 'UNIT') assert.ok(declared.endsWith(`_${more}`), `${declared} ends with its unit`)
      continue
    }
    const [, name, labels = '', value, ids, ...numbers] =
      LINE.exec(line) ?? assert.fail(`not a sample: ${line}`)
    if (ids !== undefined) checkExemplar(isOpen && name.endsWith('_bucket'), ids, numbers, line)
    // The text format declares a counter under its whole name.
    const base = !isOpen && type === 'counter' ? family.replace(/_total$/, '') : family
    assert.ok(
      SUFFIXES[type].some((suffix) => name === base + suffix),
      `${name} in the ${type} ${family}`,
    )
    assert.ok(Number.isFinite(Number(value)), line)
    checkLabels(labels)
    const key = labels === '' ? name : `${name}{${labels}}`
    assert.ok(!samples.has(key), `one sample for ${key}`)
    if (type === 'counter') assert.ok(Number(value) >= 0, line)
    samples.set(key, Number(value))
  }
  checkHistograms(samples)
  return samples
}

/** Buckets alone have them, in OpenMetrics; their labels have 128 characters at most. */
function checkExemplar(mayHave: boolean, ids: string, numbers: readonly string[], line: string): void {
  assert.ok(mayHave, line)
  checkLabels(ids)
  assert.ok(ids.replaceAll(/[=",]/g, '').length <= 128, line)
  assert.ok(numbers.every((number) => Number(number) >= 0))
}

function checkLabels(labels: string): void {
  LABEL.lastIndex = 0
  const names = new Set<string>()
  while (LABEL.lastIndex < labels.length) {
    const [, name] = LABEL.exec(labels) ?? assert.fail(`labels: ${labels}`)
    assert.ok(!names.has(name), `one label ${name}`)
    names.add(name)
  }
}

/** Buckets grow, and the last one is the count. */
function checkHistograms(samples: Samples): void {
  const last = new Map<string, readonly [bound: number, count: number]>()
  for (const [key, count] of samples) {
    const [, name, rest, le] = /^(\w+)_bucket\{(.*?),?le="([^"]+)"\}$/.exec(key) ?? []
    if (name === undefined) continue
    const series = rest === '' ? `${name}_count` : `${name}_count{${rest}}`
    const bound = le === '+Inf' ? Infinity : Number(le)
    const [before, below] = last.get(series) ?? [-Infinity, 0]
    assert.ok(bound > before && count >= below, key)
    last.set(series, [bound, count])
  }
  for (const [series, [bound, count]] of last) {
    assert.equal(bound, Infinity, series)
    assert.equal(samples.get(series), count, series)
  }
}

/** The sum of the samples of a name whose labels contain all of these. */
export function sum(samples: Samples, name: string, labels: Readonly<Record<string, string>> = {}): number {
  let total = 0
  for (const [key, value] of samples) {
    if (key !== name && !key.startsWith(`${name}{`)) continue
    if (Object.entries(labels).every(([label, text]) => key.includes(`${label}="${text}"`))) total += value
  }
  return total
}
