/**
 * The demands on fibers beside ZIO: by the ratio to the ZIO of the run, by its anchor elsewhere.
 *
 * The rows are made here instead of by a run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Row, Verdict } from '../harness/table.ts'
import { verdicts } from '../tables/fiber/verdicts.ts'

function row(traits: Partial<Row>): Row {
  const median = traits.median ?? 1
  return {
    section: 'sequential',
    row: 'default, 0..10',
    contender: 'corespun',
    condition: 'cores spinning',
    threads: 0,
    unit: 'ops/s',
    better: 'higher',
    low: median,
    high: median,
    samples: 7,
    ...traits,
    median,
  }
}

/** The one verdict against ZIO of a row. */
function besideZio(rows: readonly Row[], bar = 'sequential default, 0..10'): Verdict {
  const found = verdicts(rows).filter((one) => one.bar.startsWith(`${bar}: `) && one.bar.includes('ZIO 2'))
  assert.equal(found.length, 1)
  return found[0]
}

test('where ZIO was measured its ratio decides, whatever the anchor is', () => {
  const slow = [row({ median: 600_000 }), row({ contender: 'zio', median: 500_000 })]
  assert.deepEqual(besideZio(slow), {
    bar: 'sequential default, 0..10: ahead of ZIO 2 in this run',
    measured: '1.20 ×',
    holds: true,
  })
  const fast = [row({ median: 3_000_000 }), row({ contender: 'zio', median: 4_000_000 })]
  assert.equal(besideZio(fast).holds, false)
})

test('where it was not, the anchor decides, and the bar names its machine', () => {
  assert.deepEqual(besideZio([row({ median: 2_000_000 })]), {
    bar: "sequential default, 0..10: ahead of ZIO 2's 2186000 on another machine",
    measured: '2000000 ops/s',
    holds: false,
  })
  assert.equal(besideZio([row({ median: 2_200_000 })]).holds, true)
})

test('a row that Corespun lacks is not judged by what ZIO did', () => {
  assert.equal(besideZio([row({ contender: 'zio', median: 1 })]).holds, undefined)
})

test('a ZIO of another condition does not count', () => {
  const traits = { row: 'blocking, 0..10', threads: 2 } as const
  const own = row({ ...traits, median: 200_000 })
  const asleep = row({ ...traits, contender: 'zio', condition: 'cores asleep', median: 100_000 })
  const found = besideZio([own, asleep], 'sequential blocking, 0..10')
  assert.match(found.bar, /on another machine$/)
  assert.equal(found.holds, false) // 4 × 56,000
})

test('handed over, four times ZIO is chosen, and once on work-stealing', () => {
  const check = (section: string, executor: string, times: number, holds: boolean): void => {
    const traits = { section, row: `${executor}, 0..20`, threads: 2 } as const
    const rows = [
      row({ ...traits, median: times * 10_000 }),
      row({ ...traits, contender: 'zio', median: 10_000 }),
    ]
    const found = besideZio(rows, `${section.replace('16 ', '')} ${executor}, 0..20`)
    assert.deepEqual([found.holds, found.measured], [holds, `${times.toFixed(2)} ×`])
  }
  for (const section of ['sequential', '16 fibers']) {
    for (const executor of ['blocking', 'cached']) {
      check(section, executor, 4, true)
      check(section, executor, 3.9, false)
    }
    check(section, 'work-stealing', 1, true)
    check(section, 'work-stealing', 0.9, false)
  }
})
