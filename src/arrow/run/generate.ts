/**
 * The second tier: one generated function for a whole synchronous arrow.
 *
 * Arrows of one shape whose functions have the same source text share one piece of code, and with it the
 * engine's call feedback; others get their own, so that their functions are inlined. Where generating code is
 * forbidden there is no second tier.
 */
import { notEither } from '../build/either.ts'
import { Raised, traced } from '../build/failure.ts'
import type { ArrowNode } from '../build/node.ts'
import { TOO_LARGE, Writer } from './writer.ts'

/** Pieces of code kept for sharing; the oldest is dropped first. */
const SHARED_MAX = 2048
/** Parts of code that is a method; with more it is a closure. */
const METHOD_PARTS_MAX = 64

type Code = (input: unknown) => unknown
type Factory = (...parts: readonly unknown[]) => Code
/** Code that finds what it calls in `this.parts`. */
type Method = (this: { readonly parts: object | null }, input: unknown) => unknown
/** One function for all arrows of a shape, and the class of their parts. */
interface Shape {
  readonly run: Method
  readonly Parts: new (...parts: readonly unknown[]) => object
}

const shared = new Map<string, Factory | Shape>()
let forbidden = false
let madeCount = 0

/**
 * Code for a synchronous node, or for parts of a chain one after the other; its failures are thrown wrapped.
 * `undefined` when it would be too large or generating is forbidden.
 */
export function generate(nodes: readonly ArrowNode[]): Code | undefined {
  const written = write(nodes)
  if (written === undefined) return undefined
  const names = namesOf(written)
  const body = `return function arrow(x) {\n${written.code}\n}`
  const factory = made(`${body}\n${written.texts}`, `return (${names}) => {\n${body}\n}`) as
    | Factory
    | undefined
  return factory?.(...written.parts)
}

/**
 * Code for a whole node, as a method: all arrows of one shape share one function, which finds its parts in
 * the node's `parts`. Call sites then compare one pointer and do not look behind a closure.
 */
export function generateMethod(
  node: ArrowNode,
): { readonly run: Method; readonly parts: object } | undefined {
  const written = write([node])
  if (written === undefined || written.parts.length > METHOD_PARTS_MAX) return undefined
  const names = namesOf(written)
  const [fields, head] =
    names === ''
      ? ['', '']
      : [names.replace(/p\d+/g, 'this.$& = $&').replaceAll(',', ';'), `const { ${names} } = this.parts\n`]
  const source = `class Parts { constructor(${names}) { ${fields} } }
return { Parts, run: function arrow(x) {\n${head}${written.code}\n} }`
  const shape = made(`${source}\n${written.texts}`, source) as Shape | undefined
  return shape && { run: shape.run, parts: new shape.Parts(...written.parts) }
}

/** What was written for an arrow: statements, the values they use, and the texts of its functions. */
interface Written {
  readonly code: string
  readonly parts: readonly unknown[]
  readonly texts: string
}

function write(nodes: readonly ArrowNode[]): Written | undefined {
  if (forbidden || nodes.length === 0) return undefined
  const writer = new Writer()
  try {
    const result = writer.whole(nodes)
    const code = `${writer.lines.join('\n')}\nreturn ${result}`
    return { code, parts: writer.parts, texts: writer.texts.join('\n') }
  } catch (thrown) {
    if (thrown === TOO_LARGE) return undefined
    throw thrown
  }
}

function namesOf({ parts }: Written): string {
  return parts.map((_, index) => `p${index}`).join(', ')
}

/** The result of running `source`, once for each key; `undefined` where that is forbidden. */
function made(key: string, source: string): unknown {
  const known = shared.get(key)
  if (known !== undefined) return known
  let fresh: Factory | Shape
  try {
    // The number makes each source unique, so that no two pieces of code share call feedback.
    const text = `'use strict'\n${source}\n//# sourceURL=corespun:arrow/${++madeCount}`
    fresh = new Function('Raised', 'traced', 'notEither', text)(Raised, traced, notEither) as Factory | Shape
  } catch (error) {
    if (!(error instanceof EvalError)) throw error
    forbidden = true
    return undefined
  }
  if (shared.size >= SHARED_MAX) shared.delete(shared.keys().next().value as string)
  shared.set(key, fresh)
  return fresh
}
