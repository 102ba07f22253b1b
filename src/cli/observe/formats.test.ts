/**
 * Samples of threads as files: which label a sample has, and what each format makes of it.
 * The profiles are written by hand, so that each time is known.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CallFrame, CpuProfile, ThreadProfile } from '../../observe/internal.ts'
import { cpuProfile, heapProfile, speedscope } from './formats.ts'
import { laneOf, sharesOf, stackOf } from './lanes.ts'

const frame = (functionName: string): CallFrame => ({
  functionName,
  scriptId: '1',
  url: 'file:///app.ts',
  lineNumber: 4,
  columnNumber: 2,
})

/** `(root)` calls `outer`, which calls `inner`; `(idle)` and the collector lie beside `outer`. */
const nodes = [
  { id: 1, callFrame: frame('(root)'), children: [2, 4, 5] },
  { id: 2, callFrame: frame('outer'), children: [3] },
  { id: 3, callFrame: frame('inner') },
  { id: 4, callFrame: frame('(idle)') },
  { id: 5, callFrame: frame('(garbage collector)') },
]

/** A sample each 10 µs from 1000 µs on, 5 µs after the start; the last lasts 7. */
function profileOf(samples: number[], more: Partial<ThreadProfile> = {}): ThreadProfile {
  const timeDeltas = samples.map((_, index) => (index === 0 ? 5 : 10))
  const endTime = 1000 + 5 + 10 * (samples.length - 1) + 7
  const cpu: CpuProfile = { nodes, startTime: 1000, endTime, samples, timeDeltas }
  return { thread: 3, name: 'cpu/0', cpu, first: '', ...more }
}

const labels = { names: ['', 'GET /', 'cpu score'], times: [1006, 1025, 1040], labels: [1, 2, 0] }

test('a sample has the label of its moment, and lasts until the next one', () => {
  const lane = laneOf(profileOf([2, 3, 5, 4, 3, 5], { labels, first: 'early' }))
  assert.equal(lane?.name, 'thread 3, cpu/0')
  assert.deepEqual(lane.samples, [
    { node: 2, us: 10, label: 'early' },
    { node: 3, us: 10, label: 'GET /' },
    { node: 5, us: 10, label: 'cpu score' },
    { node: 4, us: 10, label: '' },
    { node: 3, us: 10, label: '' },
    { node: 5, us: 7, label: 'cpu score' },
  ])
  assert.deepEqual(
    stackOf(lane, 3).map(({ functionName }) => functionName),
    ['outer', 'inner'],
  )
})

test('without changes a thread has its first label; without samples it has no lane', () => {
  assert.deepEqual(laneOf(profileOf([2, 4], { first: 'cpu loop' }))?.samples, [
    { node: 2, us: 10, label: 'cpu loop' },
    { node: 4, us: 7, label: '' },
  ])
  assert.equal(laneOf({ thread: 0, name: 'the main thread', first: '', problem: 'silent' }), undefined)
  assert.deepEqual(laneOf(profileOf([]))?.samples, [])
})

test('shares are of the time that is not idle', () => {
  const lanes = [laneOf(profileOf([2, 3, 4], { first: 'a' }))!, laneOf(profileOf([2, 2], { labels }))!]
  const { busyMs, shares } = sharesOf(lanes)
  assert.equal(busyMs, 0.037)
  assert.deepEqual(shares, [
    ['a', 20 / 37],
    ['', 10 / 37],
    ['GET /', 7 / 37],
  ])
  assert.deepEqual(sharesOf([]), { busyMs: 0, shares: [] })
})

test('a cpuprofile has the threads one after the other, and all of their time', () => {
  const lanes = [
    laneOf(profileOf([2, 3], { first: 'a' }))!,
    laneOf(profileOf([3, 4, 3], { name: 'cpu/1', thread: 4 }))!,
  ]
  const made = cpuProfile(lanes) as CpuProfile
  const byId = new Map(made.nodes.map((node) => [node.id, node]))
  const parents = new Map(
    made.nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)),
  )
  const pathOf = (id: number): string => {
    const parent = parents.get(id)
    return `${parent === undefined ? '' : `${pathOf(parent)} > `}${byId.get(id)?.callFrame.functionName}`
  }
  assert.deepEqual(made.samples?.map(pathOf), [
    '(root) > thread 3, cpu/0 > [a] > outer',
    '(root) > thread 3, cpu/0 > [a] > outer > inner',
    '(root) > thread 4, cpu/1 > outer > inner',
    '(root) > thread 4, cpu/1 > (idle)',
    '(root) > thread 4, cpu/1 > outer > inner',
  ])
  // A delta is the time of the sample before it, as in V8's own files.
  assert.deepEqual(made.timeDeltas, [0, 10, 7, 10, 10])
  assert.equal(made.endTime, 44)
  assert.equal(new Set(made.samples).size, made.nodes.length - 5, 'equal stacks are one node')
})

test('speedscope has a profile for each thread, whose weights are its time', () => {
  const lanes = [
    laneOf(profileOf([2, 3], { first: 'a' }))!,
    laneOf(profileOf([4], { name: 'cpu/1', thread: 4 }))!,
  ]
  const { shared, profiles, $schema } = speedscope(lanes) as {
    $schema: string
    shared: { frames: { name: string; file?: string; line?: number; col?: number }[] }
    profiles: { name: string; samples: number[][]; weights: number[]; endValue: number }[]
  }
  assert.equal($schema, 'https://www.speedscope.app/file-format-schema.json')
  const named = profiles.map(({ samples }) =>
    samples.map((stack) => stack.map((at) => shared.frames[at].name)),
  )
  assert.deepEqual(named, [
    [
      ['[a]', 'outer'],
      ['[a]', 'outer', 'inner'],
    ],
    [['(idle)']],
  ])
  assert.deepEqual(
    profiles.map(({ name, weights, endValue }) => [name, weights, endValue]),
    [
      ['thread 3, cpu/0', [10, 7], 17],
      ['thread 4, cpu/1', [7], 7],
    ],
  )
  assert.deepEqual(
    shared.frames.find(({ name }) => name === 'outer'),
    {
      name: 'outer',
      file: 'file:///app.ts',
      line: 5,
      col: 3,
    },
  )
})

test('a heapprofile has a subtree for each thread, with ids of its own', () => {
  const leaf = { callFrame: frame('allocates'), selfSize: 100, id: 9, children: [] }
  const head = { callFrame: frame('(root)'), selfSize: 0, id: 1, children: [leaf] }
  const threads = [0, 1].map((thread): ThreadProfile => ({
    thread,
    name: `t${thread}`,
    first: '',
    heap: { head },
  }))
  const made = heapProfile([...threads, { thread: 2, name: 'silent', first: '' }]) as { head: typeof head }
  const text = JSON.stringify(made, ['head', 'id', 'callFrame', 'functionName', 'children', 'selfSize'])
  const names = [...text.matchAll(/"functionName":"([^"]*)"/g)].map(([, name]) => name)
  assert.deepEqual(names, ['(root)', 'thread 0, t0', 'allocates', 'thread 1, t1', 'allocates'])
  const ids = [...text.matchAll(/"id":(\d+)/g)].map(([, id]) => id)
  assert.equal(new Set(ids).size, ids.length)
})
