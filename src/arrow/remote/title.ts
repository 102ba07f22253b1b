/**
 * What people call an arrow that runs in a zone: its name, or the names of its stages and functions.
 *
 * For profiles, whose samples would all be of the one function that runs arrows.
 */
import { type ArrowNode, type Attempt, OpCode, type Wait } from '../build/node.ts'
import { exportOf } from './serialize.ts'

/** Names in a title, and nodes that are looked at for them. */
const NAMES_MAX = 4
const NODES_MAX = 256

/** Such as `parse and analyse`, `parse, analyse` or `2 stages`. */
export function titleOf(whole: ArrowNode): string {
  const names: string[] = []
  const open: (ArrowNode | null | undefined)[] = [whole]
  let seen = 0
  for (; open.length > 0 && seen < NODES_MAX && names.length < NAMES_MAX; seen++) {
    const node = open.pop()
    if (node === null || node === undefined) continue
    const { op, a, b, data } = node
    if (op === OpCode.named) names.push(String(data))
    else {
      const name = nameOf(functionOf(op, data))
      if (name !== '') names.push(name)
      open.push(op === OpCode.wait ? (data as Wait).inner : b, a)
    }
  }
  return names.length > 0 ? names.join(', ') : `without a name`
}

function functionOf(op: OpCode, data: unknown): unknown {
  if (op === OpCode.attempt) return (data as Attempt).body
  return op === OpCode.wait ? (data as Wait).parts[0] : data
}

function nameOf(fn: unknown): string {
  if (typeof fn !== 'function') return ''
  const { name } = fn.name === '' ? (exportOf(fn) ?? fn) : fn
  return name === 'anonymous' ? '' : name
}
