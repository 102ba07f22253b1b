/**
 * Profiles of several threads as files that other tools open: `.cpuprofile`, `.heapprofile`, speedscope.
 * Threads and labels become frames where a format has nothing for them.
 */
import type { CallFrame, HeapNode, ThreadProfile } from '../../observe/internal.ts'
import { type Lane, stackOf } from './lanes.ts'

interface CpuNode {
  readonly id: number
  readonly callFrame: CallFrame
  hitCount: number
  readonly children: number[]
}

/** A frame without a source. */
const frameNamed = (functionName: string): CallFrame => ({
  functionName,
  scriptId: '0',
  url: '',
  lineNumber: -1,
  columnNumber: -1,
})

/**
 * A `.cpuprofile`: its one line of time has the threads one after the other. Stacks lie under their thread
 * and their label.
 */
export function cpuProfile(lanes: readonly Lane[]): object {
  const nodes: CpuNode[] = []
  const known = new Map<string, number>()
  const nodeOf = (parent: number, callFrame: CallFrame): number => {
    const { functionName, url, lineNumber, columnNumber } = callFrame
    const key = JSON.stringify([parent, functionName, url, lineNumber, columnNumber])
    let id = known.get(key)
    if (id !== undefined) return id
    id = nodes.push({ id: nodes.length + 1, callFrame, hitCount: 0, children: [] })
    known.set(key, id)
    if (parent !== 0) nodes[parent - 1].children.push(id)
    return id
  }
  const root = nodeOf(0, frameNamed('(root)'))
  const samples: number[] = []
  const timeDeltas: number[] = []
  let [last, endTime] = [0, 0]
  for (const lane of lanes) {
    const thread = nodeOf(root, frameNamed(lane.name))
    const ids = new Map<string, number>()
    for (const { node, us, label } of lane.samples) {
      const key = `${node} ${label}`
      let id = ids.get(key)
      if (id === undefined) {
        id = label === '' ? thread : nodeOf(thread, frameNamed(`[${label}]`))
        for (const frame of stackOf(lane, node)) id = nodeOf(id, frame)
        ids.set(key, id)
      }
      nodes[id - 1].hitCount += 1
      samples.push(id)
      timeDeltas.push(last)
      last = us
      endTime += us
    }
  }
  return { nodes, startTime: 0, endTime, samples, timeDeltas }
}

/** A file of https://speedscope.app: a profile for each thread. */
export function speedscope(lanes: readonly Lane[]): object {
  const frames: object[] = []
  const known = new Map<string, number>()
  const frameOf = ({ functionName, url, lineNumber, columnNumber }: CallFrame): number => {
    const key = JSON.stringify([functionName, url, lineNumber, columnNumber])
    let index = known.get(key)
    if (index === undefined) {
      const name = functionName === '' ? '(anonymous)' : functionName
      const where = url === '' ? {} : { file: url, line: lineNumber + 1, col: columnNumber + 1 }
      index = frames.push({ name, ...where }) - 1
      known.set(key, index)
    }
    return index
  }
  const profiles = lanes.map((lane) => {
    const samples = lane.samples.map(({ node, label }) => [
      ...(label === '' ? [] : [frameOf(frameNamed(`[${label}]`))]),
      ...stackOf(lane, node).map(frameOf),
    ])
    const weights = lane.samples.map(({ us }) => us)
    const endValue = weights.reduce((sum, us) => sum + us, 0)
    return {
      type: 'sampled',
      name: lane.name,
      unit: 'microseconds',
      startValue: 0,
      endValue,
      samples,
      weights,
    }
  })
  return {
    $schema: 'https://www.speedscope.app/file-format-schema.json',
    exporter: 'corespun',
    activeProfileIndex: 0,
    shared: { frames },
    profiles,
  }
}

/** A `.heapprofile`: what each thread has allocated lies under the thread. */
export function heapProfile(threads: readonly ThreadProfile[]): object {
  let id = 0
  const numbered = (node: HeapNode): HeapNode => ({
    ...node,
    id: ++id,
    children: node.children.map(numbered),
  })
  const children = threads.flatMap(({ thread, name, heap }): HeapNode[] => {
    if (heap === undefined) return []
    const callFrame = frameNamed(`thread ${thread}, ${name}`)
    return [numbered({ ...heap.head, callFrame })]
  })
  return { head: { callFrame: frameNamed('(root)'), selfSize: 0, id: 0, children } }
}
