/**
 * `explain`: a drawing of how an arrow runs. The stages in order, what is fused, what waits, what hops.
 *
 * Times are of measured runs, and the text states of how many: a run that is not measured pays nothing,
 * and generated code does not even count its runs. A part that occurs twice is drawn twice; a drawing of
 * more than LINES_MAX lines is cut.
 */
import { type StageCount, durationText, meters, oneOf, optionsOf } from '../../base/index.ts'
import { wrong } from '../errors.ts'
import { hotArrows } from '../run/hot.ts'
import { countedRuns } from '../run/tiering.ts'
import type { Measure, Profile } from '../run/profile.ts'
import {
  ASYNC,
  BIG,
  CODED_FUEL,
  DYNAMIC,
  OpCode,
  isAsyncFunction,
  isSync,
  joinRows,
  rowOf,
  type ArrowNode,
  type Wait,
} from '../build/node.ts'
import { type Hop, hopOf } from '../remote/hop.ts'
import { exportOf } from '../remote/serialize.ts'
import { FIRST_STEPS } from '../run/steps.ts'

/** Lines of a drawing; the others are counted. */
const LINES_MAX = 200
/** Parts of a chain that are examined for their rows. */
const HOPS_MAX = 2 ** 20
/** Of a name in figures. */
const NAME_CHARS_MAX = 100
const EXPLAIN = { format: oneOf<'text' | 'mermaid' | 'dot'>(['text', 'mermaid', 'dot'], 'text') }

interface Line {
  readonly depth: number
  readonly text: string
  readonly node: ArrowNode | undefined
  /** The arrow in whose runs the node is measured: the whole, or the one inside of a stage that waits. */
  readonly within: ArrowNode
}

interface Visit {
  readonly depth: number
  readonly visit: ArrowNode
  readonly fused: boolean
  readonly within: ArrowNode
}

type Open = (Line | Visit)[]

export function explained(
  node: ArrowNode,
  options?: { readonly format?: 'text' | 'mermaid' | 'dot' },
): string {
  const { format } = optionsOf(options, EXPLAIN, wrong, 'explain()')
  const lines = linesOf(node)
  const profile = node.profile as Profile | undefined
  if (format === 'mermaid') return mermaid(lines)
  if (format === 'dot') return dot(lines)
  const width = Math.min(60, Math.max(...lines.map((line) => line.depth * 2 + line.text.length)))
  const figures = lines.map(measuredText)
  const shown = lines.slice(0, LINES_MAX).map((line, index) => {
    const left = '  '.repeat(line.depth) + line.text
    const measured = figures[index]
    return measured === '' ? left : `${left.padEnd(width)}  ${measured}`
  })
  if (lines.length > LINES_MAX) shown.push(`... and ${lines.length - LINES_MAX} more`)
  const why = figures.every((measured) => measured === '') ? whyUnmeasured(node, profile) : ''
  return `${headOf(node, profile)}\n${why}${shown.join('\n')}\n`
}

meters.stages = () => hotArrows().flatMap(stagesOf)

/** Names of stages by which an arrow without one is called. */
const NAMES_MAX = 3

/** The measured stages of an arrow, and its ways to zones, as they are drawn. */
function stagesOf(node: ArrowNode): StageCount[] {
  const lines = linesOf(node).slice(0, LINES_MAX)
  const nameOf = ({ node: part }: Line): string =>
    part?.op === OpCode.named ? String(part.data).slice(0, NAME_CHARS_MAX) : ''
  const named = lines.filter((line) => nameOf(line) !== '')
  const first = named.filter(({ depth }) => depth === named[0].depth).slice(0, NAMES_MAX)
  const arrow = first.length === 0 ? 'without a name' : first.map(nameOf).join(' → ')
  const around: Line[] = []
  return lines.flatMap((line): StageCount[] => {
    while (around.length > 0 && around[around.length - 1].depth >= line.depth) around.pop()
    const stage = [...around.map(nameOf), line.text].filter((name) => name !== '').join(' › ')
    around.push(line)
    const { measure, hop } = measuredOf(line)
    if (hop !== undefined && hop.hops > 0)
      return [{ arrow, stage: `the way ${stage}`, calls: hop.hops, ms: hop.totalMs - hop.workerMs }]
    const isPart = nameOf(line) === '' && measure !== undefined
    return isPart ? [{ arrow, stage, calls: measure.calls, ms: measure.ms }] : []
  })
}

function headOf(node: ArrowNode, profile: Profile | undefined): string {
  const kind = (node.flags & ASYNC) !== 0 ? 'async' : (node.flags & DYNAMIC) !== 0 ? 'dynamic' : 'sync'
  return `arrow, ${kind}, ${counted(node.size, 'node')}, ${tierOf(node, profile)}`
}

/** How the arrow runs, and how many runs the figures are of. */
function tierOf(node: ArrowNode, profile: Profile | undefined): string {
  const measured = profile?.measuredRuns ?? 0
  const of = (runs: number, which = ''): string => {
    if (runs === 0) return ''
    if (measured === 0) return `; ${counted(runs, 'run')}, none measured yet`
    return `; measured in ${numeral(measured)} of ${which}${counted(runs, 'run')}`
  }
  if (!isSmallSync(node))
    return `${profile?.fused === undefined ? 'interpreted' : 'interpreted, fused'}${of(profile?.runs ?? 0)}`
  if (node.fuel !== CODED_FUEL) return `closures${of(runsOf(node))}`
  return `code generated${measured === 0 ? '' : of(runsOf(node), 'its first ')}`
}

function isSmallSync(node: ArrowNode): boolean {
  return (node.flags & (ASYNC | DYNAMIC | BIG)) === 0
}

/** All runs of a small synchronous node, or those before it had code. */
function runsOf(node: ArrowNode): number {
  if (node.size === 1) return 0
  const first = node.flags === 0 ? FIRST_STEPS[node.op] : undefined
  if (first?.includes(node.step)) return 0
  return countedRuns(node) + (first === undefined ? 0 : 1)
}

/** A line that explains why an arrow has no figures; empty for all others. */
function whyUnmeasured(node: ArrowNode, profile: Profile | undefined): string {
  if (!isSmallSync(node)) return ''
  if (node.size === 1) return 'not measured: a single synchronous function is called directly\n'
  if (node.fuel !== CODED_FUEL || (profile?.measuredRuns ?? 0) > 0) return ''
  return 'not measured: its code was generated before a run was measured, and is called directly\n'
}

const OP_NAMES: ReadonlyMap<OpCode, string> = new Map(
  Object.entries(OpCode).map(([name, code]) => [code, name] as const),
)

/** A line for each stage, without recursion. */
function linesOf(root: ArrowNode): Line[] {
  const lines: Line[] = []
  const open: Open = [{ depth: 0, visit: root, fused: false, within: root }]
  for (let next = open.pop(); next !== undefined && lines.length <= LINES_MAX * 5; next = open.pop()) {
    if (!('visit' in next)) {
      lines.push(next)
      continue
    }
    const { visit: node, depth, fused, within } = next
    const children: Open = []
    if (node.op === OpCode.chain) chainLines(next, children)
    else {
      children.push({ depth, text: textOf(node), node, within })
      for (const [label, child] of childrenOf(node)) {
        if (label !== '') children.push({ depth: depth + 1, text: label, node: undefined, within })
        const deeper = depth + (label === '' ? 1 : 2)
        const owner = node.op === OpCode.wait ? child : within
        children.push({ depth: deeper, visit: child, fused: fused || isSync(node), within: owner })
      }
    }
    for (const child of children.reverse()) open.push(child)
  }
  return lines
}

/** The parts of a chain; synchronous neighbours are one function, drawn as a group. */
function chainLines({ visit, depth, fused, within }: Visit, into: Open): void {
  const parts = joinedParts(visit)
  for (let at = 0; at < parts.length; at += 1) {
    let end = at
    while (end < parts.length && isSync(parts[end])) end += 1
    const groups = !fused && end - at > 1
    if (groups) into.push({ depth, text: `fused: ${end - at} stages`, node: undefined, within })
    for (const part of end > at ? parts.slice(at, end) : [parts[at]])
      into.push({ depth: groups ? depth + 1 : depth, visit: part, fused: fused || groups, within })
    if (end > at) at = end - 1
  }
}

/** The first parts of a chain, joined as in its plan; a row of hops is followed to its end. */
function joinedParts(node: ArrowNode): ArrowNode[] {
  const parts: ArrowNode[] = []
  const open: ArrowNode[] = [node]
  let alone = 0
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (alone === LINES_MAX * 5 || parts.length === HOPS_MAX) break
    if (next.op === OpCode.chain) {
      open.push(next.b as ArrowNode, next.a as ArrowNode)
      continue
    }
    if (rowOf(next) === undefined) alone += 1
    parts.push(next)
  }
  // No run has a row that is cut here, so it is not joined just to be drawn.
  return parts.length === HOPS_MAX ? parts.slice(0, LINES_MAX * 5) : joinRows(parts)
}

function childrenOf(node: ArrowNode): (readonly [label: string, child: ArrowNode])[] {
  const a = node.a as ArrowNode
  switch (node.op) {
    case OpCode.branch:
      return [
        ['if', a],
        ['then', node.b as ArrowNode],
        ['else', node.data as ArrowNode],
      ]
    case OpCode.loop:
      return [
        ['while', a],
        ['do', node.b as ArrowNode],
      ]
    case OpCode.choice:
      return [
        ['left', a],
        ['right', node.b as ArrowNode],
      ]
    case OpCode.wait: {
      const { inner } = node.data as Wait
      return inner === undefined ? [] : [['', inner]]
    }
    default:
      return [node.a, node.b].filter((child) => child !== null).map((child) => ['', child] as const)
  }
}

function textOf(node: ArrowNode): string {
  const name = OP_NAMES.get(node.op) as string
  switch (node.op) {
    case OpCode.call:
      return isAsyncFunction(node.data)
        ? `${functionName(node.data)}, not awaited: its value is a promise; liftAsync() awaits`
        : functionName(node.data)
    case OpCode.tap:
      return `tap ${functionName(node.data)}`
    case OpCode.attempt:
      return `effect ${functionName((node.data as { body: unknown }).body)}`
    case OpCode.named:
      return JSON.stringify(node.data)
    case OpCode.branch:
      return 'ifThenElse'
    case OpCode.loop:
      return 'whileDo'
    case OpCode.zip:
      return 'zipWith'
    case OpCode.effect:
      return 'keepInput'
    case OpCode.constant:
      return 'succeed'
    case OpCode.wait: {
      const { kind, parts, shown } = node.data as Wait
      const what = shown === undefined ? '' : ` ${shown()}`
      if (kind === 'async' || kind === 'fiber') return `${kind} ${functionName(parts[0])}`
      return `${kind}${what}`
    }
    default:
      return name
  }
}

function functionName(fn: unknown): string {
  if (typeof fn !== 'function') return 'function'
  const { name } = fn.name === '' ? (exportOf(fn) ?? fn) : fn
  return name === '' || name === 'anonymous' ? 'function' : name
}

function measuredOf({ node, within }: Line): {
  readonly measure: Measure | undefined
  readonly hop: Hop | undefined
} {
  if (node === undefined) return { measure: undefined, hop: undefined }
  const measure = (within.profile as Profile | undefined)?.measures.get(node)
  return { measure, hop: node.op === OpCode.wait ? hopOf(node.data as Wait) : undefined }
}

function measuredText(line: Line): string {
  const { measure, hop } = measuredOf(line)
  const times = measure === undefined ? '' : measureText(measure)
  if (hop === undefined || hop.hops === 0) return times
  const cost = durationText((hop.totalMs - hop.workerMs) / hop.hops)
  const away = durationText(hop.workerMs / hop.hops)
  return `${counted(hop.hops, 'hop')}, each ${away} in the worker + ${cost} on the way`
}

function measureText({ calls, ms }: Measure): string {
  return `${counted(calls, 'call')} measured, mean ${durationText(ms / calls)}`
}

function counted(count: number, what: string): string {
  return `${numeral(count)} ${count === 1 ? what : `${what}s`}`
}

function numeral(count: number): string {
  return count.toLocaleString('en-US')
}

function mermaid(lines: readonly Line[]): string {
  const body = lines.slice(0, LINES_MAX).map((line, index) => {
    const label = labelOf(line).replaceAll('"', '#quot;')
    const parent = parentOf(lines, index)
    return `  n${index}["${label}"]${parent < 0 ? '' : `\n  n${parent} --> n${index}`}`
  })
  return `flowchart TD\n${body.join('\n')}\n`
}

function dot(lines: readonly Line[]): string {
  const body = lines.slice(0, LINES_MAX).map((line, index) => {
    const parent = parentOf(lines, index)
    const edge = parent < 0 ? '' : `\n  n${parent} -> n${index}`
    return `  n${index} [label=${JSON.stringify(labelOf(line))}]${edge}`
  })
  return `digraph arrow {\n${body.join('\n')}\n}\n`
}

function labelOf(line: Line): string {
  const measured = measuredText(line)
  return measured === '' ? line.text : `${line.text}: ${measured}`
}

/** The line that this one belongs to, or follows at the same depth; -1 for the first. */
function parentOf(lines: readonly Line[], index: number): number {
  const { depth } = lines[index]
  for (let at = index - 1; at >= 0; at -= 1) if (lines[at].depth <= depth) return at
  return -1
}
