/**
 * Plans: the lists of instructions that the interpreter runs for large, waiting and dynamic arrows.
 *
 * A plan has no nesting: nested parts of the graph follow each other and use a stack of values. So neither
 * building nor running a plan recurses, whatever the shape of the graph, and a large part that occurs
 * twice is built once. A synchronous part is one instruction, run by its own `step`.
 */
import { generate } from './generate.ts'
import { BIG, OpCode, isSync, joinRows, type ArrowNode } from '../build/node.ts'

/** What an instruction does to the value `v` and the stack beside it. */
export const Do = Object.freeze({
  /** v = part(v) */
  call: 0,
  /** v = each of part, in turn, of v */
  calls: 1,
  /** v = part.step(v) */
  step: 2,
  /** v = part */
  constant: 3,
  /** Fail with part. */
  fail: 4,
  /** v = part.start(v), waited for */
  wait: 5,
  /** Push v. */
  save: 6,
  /** Swap v and the top. */
  exchange: 7,
  /** v = part(popped, v) */
  combine: 8,
  /** v = [popped, v] */
  pair: 9,
  /** v = [v, popped] */
  pairBack: 10,
  /** Push v[1]; v = v[0] */
  openFirst: 11,
  /** Push v[0]; v = v[1] */
  openSecond: 12,
  /** v = popped */
  restore: 13,
  /** Pop. */
  drop: 14,
  /** If v is left, v = its value, else go to target. */
  ifLeft: 15,
  /** If v is right, v = its value, else go to target. */
  ifRight: 16,
  /** v = its value; go to target if it was right. */
  choose: 17,
  makeLeft: 18,
  makeRight: 19,
  /** v = popped, left if v. */
  test: 20,
  /** If v holds, v = popped; else v = popped and go to target. */
  branch: 21,
  jump: 22,
  /** Until `untry`: a failure truncates the stacks, becomes v and goes to target. */
  tryFailure: 23,
  /** Until `untry`: the name part is written into errors that pass. */
  tryName: 24,
  untry: 25,
  /** Fail with part(v). */
  raise: 26,
  /** Run the arrow part(v) on what is popped. */
  bind: 27,
  /** Run the plan of node part. */
  sub: 28,
  end: 29,
  /** v = [v[1], v[0]], [v, v], v[0], v[1] */
  swap: 30,
  dup: 31,
  fst: 32,
  snd: 33,
  /** part(v) */
  tap: 34,
} as const)

type DoCode = (typeof Do)[keyof typeof Do]

export interface Instruction {
  readonly code: DoCode
  readonly part: unknown
  target: number
  /** In measured plans, the node whose time the instruction takes. */
  readonly node: ArrowNode | undefined
}

/** The last instruction is `end`. */
export interface Plan {
  readonly instructions: readonly Instruction[]
}

/**
 * How detailed a plan is: `plain` runs synchronous parts by their steps, `fused` has code generated for them,
 * `measured` has an instruction for each stage.
 */
export type Grain = 'plain' | 'fused' | 'measured'

/** Calls in a row become one instruction from this many on. */
const CALLS_MIN = 4

/** Build the plan of a node. Linear in the distinct nodes, without recursion. */
export function buildPlan(node: ArrowNode, grain: Grain): Plan {
  return new Builder(grain).whole(node)
}

type Task = ArrowNode | (() => void)

class Builder {
  readonly #grain: Grain
  readonly #instructions: Instruction[] = []
  readonly #seen = new Set<ArrowNode>()
  readonly #open: Task[] = []
  #root: ArrowNode | undefined

  constructor(grain: Grain) {
    this.#grain = grain
  }

  whole(node: ArrowNode): Plan {
    this.#root = node
    this.#open.push(node)
    for (let task = this.#open.pop(); task !== undefined; task = this.#open.pop()) {
      if (typeof task === 'function') task()
      else this.#visit(task)
    }
    this.#emit(Do.end)
    return { instructions: this.#instructions }
  }

  #emit(code: DoCode, part?: unknown, node?: ArrowNode): Instruction {
    const instruction = { code, part, target: -1, node }
    this.#instructions.push(instruction)
    return instruction
  }

  /** Visit these in this order, before what is open already. */
  #then(...tasks: Task[]): void {
    for (let at = tasks.length - 1; at >= 0; at -= 1) this.#open.push(tasks[at])
  }

  #here(instruction: Instruction): void {
    instruction.target = this.#instructions.length
  }

  #visit(node: ArrowNode): void {
    if ((node.flags & BIG) !== 0 && node !== this.#root) {
      if (this.#seen.has(node)) return void this.#emit(Do.sub, node, node)
      this.#seen.add(node)
    }
    if (node.op === OpCode.chain) return this.#chain(node)
    if (this.#whole(node)) return this.#run([node])
    if (this.#leaf(node)) return
    if (!this.#paired(node)) this.#chosen(node)
  }

  #whole(node: ArrowNode): boolean {
    return this.#grain !== 'measured' && isSync(node) && (node.flags & BIG) === 0
  }

  #chain(node: ArrowNode): void {
    const items: (ArrowNode | readonly ArrowNode[])[] = []
    let run: ArrowNode[] = []
    const close = (): void => {
      if (run.length > 0) items.push(run)
      run = []
    }
    const open: ArrowNode[] = [node]
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (next.op === OpCode.chain && (next === node || !this.#repeated(next))) {
        open.push(next.b as ArrowNode, next.a as ArrowNode)
      } else if (this.#whole(next)) run.push(next)
      else {
        close()
        items.push(next)
      }
    }
    close()
    const joined = joinRows(items)
    for (let at = joined.length - 1; at >= 0; at -= 1) {
      const item = joined[at]
      this.#open.push(isList(item) ? () => this.#run(item) : item)
    }
  }

  /** Whether a large part has been built in this plan already; notes that it is built now. */
  #repeated(node: ArrowNode): boolean {
    if ((node.flags & BIG) === 0) return false
    const again = this.#seen.has(node)
    this.#seen.add(node)
    return again
  }

  /** Synchronous parts, one after the other. */
  #run(nodes: readonly ArrowNode[]): void {
    const code = this.#grain === 'fused' ? generate(nodes) : undefined
    if (code !== undefined) return void this.#emit(Do.call, code)
    for (let at = 0; at < nodes.length; at += 1) {
      let end = at
      while (end < nodes.length && nodes[end].op === OpCode.call) end += 1
      if (end - at >= CALLS_MIN) {
        const part = nodes.slice(at, end).map((node) => node.data)
        this.#emit(Do.calls, part)
        at = end - 1
        continue
      }
      const node = nodes[at]
      if (node.op === OpCode.call) this.#emit(Do.call, node.data)
      else this.#emit(Do.step, node)
    }
  }

  #leaf(node: ArrowNode): boolean {
    switch (node.op) {
      case OpCode.id:
        return true
      case OpCode.call:
        return this.#emit(Do.call, node.data, node) !== undefined
      case OpCode.constant:
        return this.#emit(Do.constant, node.data, node) !== undefined
      case OpCode.fail:
        return this.#emit(Do.fail, node.data, node) !== undefined
      case OpCode.attempt:
        return this.#emit(Do.step, node, node) !== undefined
      case OpCode.wait:
        return this.#emit(Do.wait, node.data, node) !== undefined
      case OpCode.tap:
        return this.#emit(Do.tap, node.data, node) !== undefined
      case OpCode.swap:
        return this.#emit(Do.swap) !== undefined
      case OpCode.dup:
        return this.#emit(Do.dup) !== undefined
      case OpCode.fst:
        return this.#emit(Do.fst) !== undefined
      case OpCode.snd:
        return this.#emit(Do.snd) !== undefined
      default:
        return false
    }
  }

  #paired(node: ArrowNode): boolean {
    const a = node.a as ArrowNode
    const b = node.b as ArrowNode
    const emit =
      (code: DoCode, part?: unknown, timed?: ArrowNode): (() => void) =>
      () =>
        void this.#emit(code, part, timed)
    switch (node.op) {
      case OpCode.zip:
        this.#then(emit(Do.save), a, emit(Do.exchange), b, emit(Do.combine, node.data, node))
        return true
      case OpCode.merge:
        this.#then(emit(Do.save), a, emit(Do.exchange), b, emit(Do.pair))
        return true
      case OpCode.split:
        this.#then(emit(Do.openFirst), a, emit(Do.exchange), b, emit(Do.pair))
        return true
      case OpCode.first:
        this.#then(emit(Do.openFirst), a, emit(Do.pairBack))
        return true
      case OpCode.second:
        this.#then(emit(Do.openSecond), a, emit(Do.pair))
        return true
      case OpCode.effect:
        this.#then(emit(Do.save), a, emit(Do.restore))
        return true
      case OpCode.flatMap:
        this.#then(emit(Do.save), a, emit(Do.bind, node.data, node))
        return true
      default:
        return false
    }
  }

  #chosen(node: ArrowNode): void {
    const a = node.a as ArrowNode
    switch (node.op) {
      case OpCode.left:
        return this.#oneSide(Do.ifLeft, a, Do.makeLeft)
      case OpCode.right:
        return this.#oneSide(Do.ifRight, a, Do.makeRight)
      case OpCode.choice:
        return this.#fork(() => this.#emit(Do.choose), a, node.b as ArrowNode)
      case OpCode.test:
        return this.#then(
          () => void this.#emit(Do.save),
          a,
          () => void this.#emit(Do.test),
        )
      case OpCode.branch: {
        const split = (): Instruction => this.#emit(Do.branch)
        this.#then(
          () => void this.#emit(Do.save),
          a,
          () => this.#fork(split, node.b as ArrowNode, node.data as ArrowNode),
        )
        return
      }
      case OpCode.loop:
        return this.#loop(node)
      case OpCode.mapError:
        return this.#guarded(a, false, () => void this.#emit(Do.raise, node.data, node))
      case OpCode.catchAll:
        return this.#guarded(a, true, () => void this.#emit(Do.bind, node.data, node))
      default:
        return this.#named(node)
    }
  }

  #oneSide(open: DoCode, node: ArrowNode, close: DoCode): void {
    const at = this.#emit(open)
    this.#then(node, () => {
      this.#emit(close)
      this.#here(at)
    })
  }

  #fork(split: () => Instruction, holds: ArrowNode, otherwise: ArrowNode): void {
    const at = split()
    let end: Instruction
    this.#then(
      holds,
      () => {
        end = this.#emit(Do.jump)
        this.#here(at)
      },
      otherwise,
      () => this.#here(end),
    )
  }

  #loop(node: ArrowNode): void {
    const start = this.#instructions.length
    let leave: Instruction
    this.#emit(Do.save)
    this.#then(
      node.a as ArrowNode,
      () => void (leave = this.#emit(Do.branch)),
      node.b as ArrowNode,
      () => {
        this.#emit(Do.jump).target = start
        this.#here(leave)
      },
    )
  }

  #guarded(node: ArrowNode, keepsInput: boolean, handler: () => void): void {
    if (keepsInput) this.#emit(Do.save)
    const guard = this.#emit(Do.tryFailure)
    this.#then(node, () => {
      this.#emit(Do.untry)
      if (keepsInput) this.#emit(Do.drop)
      const end = this.#emit(Do.jump)
      this.#here(guard)
      handler()
      this.#here(end)
    })
  }

  #named(node: ArrowNode): void {
    this.#emit(Do.tryName, node.data)
    this.#then(node.a as ArrowNode, () => void this.#emit(Do.untry))
  }
}

function isList(item: ArrowNode | readonly ArrowNode[]): item is readonly ArrowNode[] {
  return Array.isArray(item)
}
