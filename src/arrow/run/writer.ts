/**
 * Writes the statements of one function for a synchronous arrow.
 *
 * It walks the graph with values that need not exist: a pair is two variables until something needs the pair,
 * an Either is a condition. So `first`, `split` and `merge` make no arrays, `test` with `choice` is an `if`,
 * `whileDo` is a loop.
 */
import { ASYNC, DYNAMIC, OpCode, partsOf, type Attempt, type ArrowNode } from '../build/node.ts'

/** Statements of one function; a longer arrow is interpreted. */
const STATEMENTS_MAX = 400
/** Nesting of what is generated; chains do not nest. */
const NESTING_MAX = 60
/**
 * Calls in a row that are a loop over functions instead of a line each. Measured: from some dozens on, the
 * straight line costs more in compilation and registers than the loop.
 */
const LOOP_CALLS_MIN = 24
/** Calls of different functions in a row that are a line each. */
const MIXED_CALLS_MAX = 128
/** Characters of a function's text that are compared. */
const TEXT_CHARS_MAX = 400
/** Nodes of an arrow that code is generated for. */
const NODES_MAX = 2 ** 18
/** Thrown when an arrow gets no code. */
export const TOO_LARGE = Symbol('too large')

/** A value while code is generated: a variable, a pair of values, or a condition and both cases. */
type Value = string | PairValue | EitherValue
interface PairValue {
  readonly first: Value
  readonly second: Value
}
interface EitherValue {
  readonly condition: string
  readonly left: Value
  readonly right: Value
  /** The existing Either, for a side that nothing has changed: it is passed on itself. */
  readonly leftWhole: string | undefined
  readonly rightWhole: string | undefined
}

const textOf = Function.prototype.toString

export class Writer {
  readonly lines: string[] = []
  /** The functions and values that the code uses. */
  readonly parts: unknown[] = []
  /** The source texts of the functions: part of the key under which code is shared. */
  readonly texts: string[] = []
  readonly #numbers = new Map<Function, number>()
  #variables = 0
  #nesting = 0

  whole(nodes: readonly ArrowNode[]): string {
    return this.#atom(this.#sequence(nodes, 'x'))
  }

  #line(text: string): void {
    if (this.lines.length >= STATEMENTS_MAX) throw TOO_LARGE
    this.lines.push(text)
  }

  #variable(): string {
    return `v${this.#variables++}`
  }

  #keep(expression: string): string {
    const name = this.#variable()
    this.#line(`const ${name} = ${expression}`)
    return name
  }

  #part(part: unknown): string {
    if (typeof part !== 'function') return `p${this.parts.push(part) - 1}`
    let number = this.#numbers.get(part)
    if (number === undefined) {
      number = this.parts.push(part) - 1
      this.#numbers.set(part, number)
      this.texts.push(textOf.call(part).slice(0, TEXT_CHARS_MAX))
    }
    return `p${number}`
  }

  /** The value as an expression without effects that may be written more than once. */
  #atom(value: Value): string {
    if (typeof value === 'string') return value
    if ('first' in value) return this.#keep(`[${this.#atom(value.first)}, ${this.#atom(value.second)}]`)
    const { condition, left, right, leftWhole, rightWhole } = value
    if (leftWhole === rightWhole) {
      if (leftWhole !== undefined) return leftWhole
      const held = this.#eitherValue(value)
      return this.#keep(`{ kind: ${condition} ? 'left' : 'right', value: ${held} }`)
    }
    const name = this.#variable()
    this.#line(`let ${name}`)
    this.#branch(
      condition,
      () => this.#line(`${name} = ${leftWhole ?? `{ kind: 'left', value: ${this.#atom(left)} }`}`),
      () => this.#line(`${name} = ${rightWhole ?? `{ kind: 'right', value: ${this.#atom(right)} }`}`),
    )
    return name
  }

  #eitherValue({ condition, left, right }: EitherValue): string {
    if (left === right && typeof left === 'string') return left
    if (typeof left === 'string' && typeof right === 'string') return `${condition} ? ${left} : ${right}`
    const name = this.#variable()
    this.#line(`let ${name}`)
    this.#branch(
      condition,
      () => this.#line(`${name} = ${this.#atom(left)}`),
      () => this.#line(`${name} = ${this.#atom(right)}`),
    )
    return name
  }

  #pair(value: Value): PairValue {
    if (typeof value === 'object' && 'first' in value) return value
    const whole = this.#atom(value)
    return {
      first: this.#keep(`${whole}[0]`),
      second: this.#keep(`${whole}[1]`),
    }
  }

  #either(value: Value, method: string): EitherValue {
    if (typeof value === 'object' && 'condition' in value) return value
    const whole = this.#atom(value)
    const refused = `notEither(${whole}, '${method}()')`
    // By ?? and not ?., whose second outcome the engine would carry on to the comparisons.
    const kind = this.#keep(`(${whole} ?? ${refused}).kind`)
    const condition = this.#keep(`${kind} === 'left' || (${kind} !== 'right' && ${refused})`)
    const held = this.#keep(`${whole}.value`)
    return {
      condition,
      left: held,
      right: held,
      leftWhole: whole,
      rightWhole: whole,
    }
  }

  #branch(condition: string, holds: () => void, otherwise: () => void): void {
    this.#line(`if (${condition}) {`)
    holds()
    this.#line('} else {')
    otherwise()
    this.#line('}')
  }

  #sequence(nodes: readonly ArrowNode[], input: Value): Value {
    let value = input
    for (let at = 0; at < nodes.length; at += 1) {
      const node = nodes[at]
      if (node.op !== OpCode.call) {
        value = this.#node(node, value)
        continue
      }
      const end = this.#loopEnd(nodes, at)
      if (end - at < LOOP_CALLS_MIN) {
        value = this.#keep(`${this.#part(node.data)}(${this.#atom(value)})`)
        continue
      }
      value = this.#calls(nodes.slice(at, end), value)
      at = end - 1
    }
    return value
  }

  /**
   * The end of a loop that begins here: after the last function of the same text, since one different
   * function in a loop keeps the engine from inlining any. A long row of different functions is a loop
   * nevertheless.
   */
  #loopEnd(nodes: readonly ArrowNode[], at: number): number {
    const text = textOf.call(nodes[at].data)
    const isCall = (index: number): boolean => nodes[index]?.op === OpCode.call
    let end = at + 1
    while (isCall(end) && textOf.call(nodes[end].data) === text) end += 1
    if (end - at >= LOOP_CALLS_MIN) return end
    let all = end
    while (isCall(all) && all - at <= MIXED_CALLS_MAX) all += 1
    if (all - at <= MIXED_CALLS_MAX) return end
    while (isCall(all)) all += 1
    return all
  }

  /** Many calls in a row, four in each turn: measured, 5 to 15 % less than one in each. */
  #calls(nodes: readonly ArrowNode[], input: Value): string {
    const functions = nodes.map((node) => node.data)
    const list = this.#part(functions)
    for (const text of new Set(functions.slice(0, 1000))) {
      if (this.texts.length > 16) break
      this.texts.push(textOf.call(text).slice(0, TEXT_CHARS_MAX))
    }
    const [name, index, end] = [this.#variable(), this.#variable(), this.#variable()]
    this.#line(`let ${name} = ${this.#atom(input)}`)
    this.#line(`let ${index} = 0`)
    this.#line(`for (const ${end} = ${list}.length - 3; ${index} < ${end}; ${index} += 4) {`)
    this.#line(`const f = ${list}[${index}], g = ${list}[${index} + 1]`)
    this.#line(`const h = ${list}[${index} + 2], k = ${list}[${index} + 3]`)
    this.#line(`${name} = k(h(g(f(${name}))))`)
    this.#line('}')
    this.#line(`for (; ${index} < ${list}.length; ${index}++) {`)
    this.#line(`const f = ${list}[${index}]`)
    this.#line(`${name} = f(${name})`)
    this.#line('}')
    return name
  }

  #node(node: ArrowNode, input: Value): Value {
    if ((node.flags & (ASYNC | DYNAMIC)) !== 0 || node.size > NODES_MAX) throw TOO_LARGE
    if (++this.#nesting > NESTING_MAX) throw TOO_LARGE
    const value = this.#leaf(node, input) ?? this.#paired(node, input) ?? this.#chosen(node, input)
    this.#nesting -= 1
    return value
  }

  #leaf(node: ArrowNode, input: Value): Value | undefined {
    switch (node.op) {
      case OpCode.call:
        return this.#keep(`${this.#part(node.data)}(${this.#atom(input)})`)
      case OpCode.id:
        return input
      case OpCode.constant:
        return this.#part(node.data)
      case OpCode.fail:
        this.#line(`throw new Raised(${this.#part(node.data)})`)
        return 'undefined'
      case OpCode.attempt:
        return this.#attempt(node.data as Attempt, this.#atom(input))
      case OpCode.tap: {
        const whole = this.#atom(input)
        this.#line(`${this.#part(node.data)}(${whole})`)
        return whole
      }
      case OpCode.swap: {
        const { first, second } = this.#pair(input)
        return { first: second, second: first }
      }
      case OpCode.dup: {
        // Both sides are the same object: a pair must exist now, or it would be made twice.
        const whole = this.#atom(input)
        return { first: whole, second: whole }
      }
      case OpCode.fst:
        return this.#pair(input).first
      case OpCode.snd:
        return this.#pair(input).second
      default:
        return undefined
    }
  }

  #paired(node: ArrowNode, input: Value): Value | undefined {
    const a = node.a as ArrowNode
    switch (node.op) {
      case OpCode.chain:
        return this.#sequence(partsOf(node), input)
      case OpCode.zip: {
        const both = this.#both(node, input, input)
        return this.#keep(`${this.#part(node.data)}(${this.#atom(both.first)}, ${this.#atom(both.second)})`)
      }
      case OpCode.merge:
        return this.#both(node, input, input)
      case OpCode.split: {
        const { first, second } = this.#pair(input)
        return this.#both(node, first, second)
      }
      case OpCode.first: {
        const { first, second } = this.#pair(input)
        return { first: this.#one(a, first), second }
      }
      case OpCode.second: {
        const { first, second } = this.#pair(input)
        return { first, second: this.#one(a, second) }
      }
      case OpCode.effect: {
        const whole = this.#atom(input)
        this.#one(a, whole)
        return whole
      }
      default:
        return undefined
    }
  }

  #both(node: ArrowNode, forA: Value, forB: Value): PairValue {
    // One variable for the input of both, so that a pair is made at most once.
    const shared = forA === forB ? this.#atom(forA) : undefined
    const first = this.#one(node.a as ArrowNode, shared ?? forA)
    return { first, second: this.#one(node.b as ArrowNode, shared ?? forB) }
  }

  #one(node: ArrowNode, input: Value): Value {
    return node.op === OpCode.chain ? this.#sequence(partsOf(node), input) : this.#node(node, input)
  }

  #chosen(node: ArrowNode, input: Value): Value {
    const a = node.a as ArrowNode
    switch (node.op) {
      case OpCode.left: {
        const one = this.#either(input, 'left')
        return { ...one, left: this.#only(one.condition, a, one.left), leftWhole: undefined }
      }
      case OpCode.right: {
        const one = this.#either(input, 'right')
        return { ...one, right: this.#only(`!${one.condition}`, a, one.right), rightWhole: undefined }
      }
      case OpCode.choice: {
        const { condition, left, right } = this.#either(input, 'choice')
        return this.#oneOf(condition, [a, left], [node.b as ArrowNode, right])
      }
      case OpCode.test: {
        const whole = this.#atom(input)
        const condition = this.#keep(`!!${this.#atom(this.#one(a, whole))}`)
        return { condition, left: whole, right: whole, leftWhole: undefined, rightWhole: undefined }
      }
      case OpCode.branch: {
        const whole = this.#atom(input)
        const condition = this.#atom(this.#one(a, whole))
        return this.#oneOf(condition, [node.b as ArrowNode, whole], [node.data as ArrowNode, whole])
      }
      case OpCode.loop:
        return this.#loop(node, input)
      case OpCode.mapError:
        return this.#guarded(a, input, [
          'if (!(thrown instanceof Raised)) throw thrown',
          `throw new Raised(${this.#part(node.data)}(thrown.error))`,
        ])
      case OpCode.named:
        return this.#guarded(a, input, [`throw traced(thrown, ${this.#part(node.data)})`])
      default:
        throw TOO_LARGE
    }
  }

  /** A variable that is set only if the condition holds. */
  #only(condition: string, node: ArrowNode, input: Value): string {
    const name = this.#variable()
    this.#line(`let ${name}`)
    this.#line(`if (${condition}) {`)
    this.#line(`${name} = ${this.#atom(this.#one(node, input))}`)
    this.#line('}')
    return name
  }

  #oneOf(
    condition: string,
    holds: readonly [ArrowNode, Value],
    otherwise: readonly [ArrowNode, Value],
  ): string {
    const name = this.#variable()
    this.#line(`let ${name}`)
    const set = ([node, input]: readonly [ArrowNode, Value]): void =>
      this.#line(`${name} = ${this.#atom(this.#one(node, input))}`)
    this.#branch(
      condition,
      () => set(holds),
      () => set(otherwise),
    )
    return name
  }

  #loop(node: ArrowNode, input: Value): string {
    const name = this.#variable()
    this.#line(`let ${name} = ${this.#atom(input)}`)
    this.#line('for (;;) {')
    this.#line(`if (!${this.#atom(this.#one(node.a as ArrowNode, name))}) break`)
    this.#line(`${name} = ${this.#atom(this.#one(node.b as ArrowNode, name))}`)
    this.#line('}')
    return name
  }

  #guarded(node: ArrowNode, input: Value, handler: readonly string[]): string {
    const name = this.#variable()
    const whole = this.#atom(input)
    this.#line(`let ${name}`)
    this.#line('try {')
    this.#line(`${name} = ${this.#atom(this.#one(node, whole))}`)
    this.#line('} catch (thrown) {')
    for (const line of handler) this.#line(line)
    this.#line('}')
    return name
  }

  #attempt({ body, catcher }: Attempt, input: string): string {
    const name = this.#variable()
    const [call, mapped] = [this.#part(body), this.#part(catcher)]
    this.#line(`let ${name}`)
    this.#line('try {')
    this.#line(`${name} = ${call}(${input})`)
    this.#line('} catch (thrown) {')
    this.#line(`throw new Raised(${mapped}(thrown))`)
    this.#line('}')
    return name
  }
}
