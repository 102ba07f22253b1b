/**
 * The path of a refused part in the caller's value: `args[1].user.socket`.
 *
 * Searched only after a refusal, so that writing keeps no path. The first occurrence in writing order is
 * named; a part that exists only in what a save hook returned is named by `saved`.
 */
import { types } from 'node:util'
import { isObject } from '../base/index.ts'
import { kindOfPrototype } from './classes/platform.ts'
import { capturesOf } from './functions/lifted.ts'

/** Made when a path is searched: reading the pattern takes half a millisecond. */
let identifier: RegExp | undefined
/** Parts visited before the search stops and returns the name of the root. */
const PARTS_MAX = 1_000_000

/** Steps shown of the path of a part that is nested too deep. */
const STEPS_MAX = 16

interface PathNode {
  readonly value: unknown
  /** Objects above it. */
  readonly depth: number
  readonly before: PathNode | undefined
  readonly step: string
}

/**
 * The path of `part` within `root`.
 * @param savedOf What a save hook of this frame returned for an object, if one ran.
 */
export function pathOf(
  root: unknown,
  rootName: string,
  part: unknown,
  savedOf: (object: object) => unknown,
): string {
  const node = findNode(root, rootName, (value) => Object.is(value, part), savedOf)
  return node === undefined ? rootName : stepsOf(node).join('')
}

/**
 * The start of the path of the first object below `depthMax` others; else the name of the root.
 */
export function pathOfDepth(
  root: unknown,
  rootName: string,
  depthMax: number,
  savedOf: (object: object) => unknown,
): string {
  const isTooDeep = (value: unknown, depth: number) =>
    depth >= depthMax && typeof value === 'object' && value !== null
  const node = findNode(root, rootName, isTooDeep, savedOf)
  return node === undefined ? rootName : `${stepsOf(node).slice(0, STEPS_MAX).join('')}…`
}

/** The path of the first part of `root` that is a revoked Proxy. */
export function pathOfRevoked(
  root: unknown,
  rootName: string,
  savedOf: (object: object) => unknown,
): string | undefined {
  const node = findNode(root, rootName, isRevoked, savedOf)
  return node === undefined ? undefined : stepsOf(node).join('')
}

function isRevoked(value: unknown): boolean {
  if (!types.isProxy(value)) return false
  try {
    // Calls no handler, and throws for a revoked Proxy. Never true, but bundlers remove a call without a use.
    return Array.isArray(value) && value === undefined
  } catch {
    return true
  }
}

function findNode(
  root: unknown,
  rootName: string,
  isPart: (value: unknown, depth: number) => boolean,
  savedOf: (object: object) => unknown,
): PathNode | undefined {
  const seen = new Set<object>()
  const nodes: PathNode[] = [{ value: root, depth: 0, before: undefined, step: rootName }]
  for (let count = 0; nodes.length > 0 && count < PARTS_MAX; count++) {
    const node = nodes.pop() as PathNode
    const { value } = node
    if (isPart(value, node.depth)) return node
    const captures = typeof value === 'function' ? capturesOf(value) : undefined
    if (!isObject(value) || (typeof value === 'function' && captures === undefined)) continue
    if (seen.has(value) || isRevoked(value)) continue
    seen.add(value)
    const inner: PathNode[] = []
    const depth = node.depth + 1
    captures?.names.forEach((name, at) =>
      inner.push({
        value: captures.values[at],
        depth,
        before: undefined,
        step: `the captured variable ${name}`,
      }),
    )
    addParts(value, (step, partValue) => inner.push({ value: partValue, depth, before: node, step }), savedOf)
    // The last node is visited first: reversed, the order is that of writing.
    for (const found of inner.reverse()) nodes.push(found)
  }
  return undefined
}

function stepsOf(node: PathNode): string[] {
  const steps: string[] = []
  for (let at: PathNode | undefined = node; at !== undefined; at = at.before) steps.push(at.step)
  return steps.reverse()
}

function addParts(
  object: object,
  add: (step: string, value: unknown) => void,
  savedOf: (object: object) => unknown,
): void {
  const saved = savedOf(object)
  if (saved !== undefined) {
    const parts = kindOfPrototype(Object.getPrototypeOf(object) as object)?.parts
    if (parts === undefined) return add('.saved', saved)
    for (const [step, value] of parts(saved)) add(step, value)
    return
  }
  if (types.isMap(object)) {
    let index = 0
    for (const [key, value] of object) {
      add(`.keys()[${index++}]`, key)
      add(
        typeof key === 'string' || typeof key === 'number'
          ? `.get(${JSON.stringify(key)})`
          : `.values()[${index - 1}]`,
        value,
      )
    }
  } else if (types.isSet(object)) {
    let index = 0
    for (const value of object) add(`.values()[${index++}]`, value)
  } else if (ArrayBuffer.isView(object)) add('.buffer', object.buffer)
  else {
    if (types.isNativeError(object))
      for (const key of ['cause', 'errors', 'error', 'suppressed'])
        if (Object.hasOwn(object, key)) addField(object, key, add)
    for (const key of Object.keys(object)) addField(object, key, add)
  }
}

function addField(object: object, key: string, add: (step: string, value: unknown) => void): void {
  identifier ??= new RegExp(String.raw`^[\p{ID_Start}$_][\p{ID_Continue}$]*$`, 'u')
  const step =
    Array.isArray(object) && /^\d+$/.test(key)
      ? `[${key}]`
      : identifier.test(key)
        ? `.${key}`
        : `[${JSON.stringify(key)}]`
  let value: unknown
  try {
    value = (object as Record<string, unknown>)[key]
  } catch {
    // The getter throws again; the caller receives the first error.
    return
  }
  add(step, value)
}
