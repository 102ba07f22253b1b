/**
 * The interpreter: runs plans, waits where their stages wait, and ends when its signal is aborted.
 *
 * One interpreter is one run. It executes instructions until one of them returns a promise; then it returns a
 * promise of its own and continues when that one settles. Interruption takes effect where a run waits, and
 * the stage learns of it by its signal. A run does not wait for an asynchronous function that is interrupted;
 * every other stage ends by itself, after its finalizers, and the run ends with it. Stages that settle at
 * once use up the fibers' budget: when it is empty the run continues after timers and I/O, so that its own
 * timeout and signal take effect.
 *
 * Over 400 lines: one class whose private state every method uses.
 */
import {
  abortSignal,
  isThenable,
  promiseOf,
  unwatch,
  valueOfKind,
  watch,
  whenSettled,
} from '../../base/index.ts'
import { type Failed, type Fiber } from '../../fiber/index.ts'
import { type Ready, stepAside } from '../../fiber/internal.ts'
import { either, notEither } from '../build/either.ts'
import { wrong } from '../errors.ts'
import { Raised, Stopped, besides, traced } from '../build/failure.ts'
import { ASYNC, BIG, DYNAMIC, type ArrowNode, type RunContext, type Wait } from '../build/node.ts'
import { Do, type Instruction } from './plan.ts'
import { type Measure, type Profile, measureOf, planOf, profileOf } from './profile.ts'

/** A value that has a `then`, wrapped because a promise would adopt it. */
class Settled {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }
}

function settled(value: unknown): unknown {
  return isThenable(value) ? new Settled(value) : value
}

/** The value that `runNode` has returned, or that its promise has resolved with. */
export function valueOf(settled: unknown): unknown {
  return settled instanceof Settled ? settled.value : settled
}

/** What the loop returns when the run waits. */
const WAITING = Symbol('waiting')

/** Whether a value that a user's function has returned is an arrow; set by arrow.ts, which imports this. */
export const recognise: { isArrow: (value: unknown) => boolean } = { isArrow: () => false }

/** Stages that start others inside of them do so on the stack up to this depth, later in a microtask. */
const DEPTH_MAX = 200

/** Stages with `Wait` that are being started, one inside the other. */
let depth = 0

interface Handler {
  readonly plan: readonly Instruction[]
  /** The index at which the handling of a failure begins; -1: only add the name. */
  readonly target: number
  readonly name: string
  readonly stackLength: number
  readonly framesLength: number
}

interface Frame {
  readonly plan: readonly Instruction[]
  readonly at: number
}

export class Interpreter implements RunContext, Ready {
  readonly givenSignal: AbortSignal | undefined
  readonly fiber: Fiber | undefined
  readonly #profile: Profile | undefined
  readonly #isPlain: boolean
  readonly #stack: unknown[] = []
  readonly #handlers: Handler[] = []
  readonly #frames: Frame[] = []
  #plan: readonly Instruction[]
  #at = 0
  #value: unknown
  #own: AbortController | undefined
  #resolve: ((value: unknown) => void) | undefined
  #reject: ((reason: unknown) => void) | undefined
  /** The stage that it waits for ends by itself when the signal is aborted, and the run waits for that. */
  #holds = false
  #listens = false
  /** The `others` of the failure that is being handled. */
  #others: readonly Failed[] | undefined
  #clocked: Measure | undefined
  #clockMs = 0

  constructor(
    node: ArrowNode,
    input: unknown,
    signal: AbortSignal | undefined,
    fiber: Fiber | undefined,
    profile: Profile | undefined,
    isPlain: boolean,
  ) {
    this.#isPlain = isPlain
    this.#plan = planOf(node, profile === undefined ? 'plain' : 'measured').instructions
    this.#value = input
    this.#profile = profile
    this.givenSignal = signal
    this.fiber = fiber
  }

  get signal(): AbortSignal {
    return this.givenSignal ?? (this.#own ??= new AbortController()).signal
  }

  start(): unknown {
    if (this.#profile !== undefined) this.#profile.measuredRuns += 1
    valueOfKind('run()', 'signal', this.givenSignal, abortSignal, wrong)
    if (this.givenSignal?.aborted === true) throw new Stopped(this.givenSignal.reason)
    const value = this.#untilWaiting()
    if (value !== WAITING) return this.#isPlain ? value : settled(value)
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      this.#lookAround()
    })
  }

  /**
   * Called when the run begins to wait: a stage may have aborted the run's signal. A stage that holds listens
   * by itself, so that of interpreters inside of each other only one does.
   */
  #lookAround(): void {
    const signal = this.givenSignal
    if (signal === undefined || this.#holds) return
    if (signal.aborted) return this.#aborted()
    if (this.#listens) return
    this.#listens = true
    watch(signal, this.#aborted)
  }

  readonly #aborted = (): void => {
    if (!this.#holds) this.#over()?.(new Stopped(this.givenSignal?.reason))
  }

  /** Stop waiting. Returns whether a held stage has ended because of the signal, which ends the run. */
  #letGo(): boolean {
    const held = this.#holds
    this.#holds = false
    return held && this.givenSignal?.aborted === true
  }

  /** End the run. Returns the function that rejects its promise, if that has not settled. */
  #over(): ((reason: unknown) => void) | undefined {
    const reject = this.#reject
    this.#resolve = this.#reject = undefined
    if (this.#listens) unwatch(this.givenSignal as AbortSignal, this.#aborted)
    return reject
  }

  #untilWaiting(): unknown {
    for (;;) {
      try {
        return this.#profile === undefined ? this.#instructions() : this.#measuredInstructions(this.#profile)
      } catch (thrown) {
        this.#recover(thrown)
      }
    }
  }

  #recover(thrown: unknown): void {
    this.#clock(undefined)
    for (let handler = this.#handlers.pop(); handler !== undefined; handler = this.#handlers.pop()) {
      if (handler.target < 0) thrown = traced(thrown, handler.name)
      else if (thrown instanceof Raised) {
        this.#stack.length = handler.stackLength
        this.#frames.length = handler.framesLength
        this.#plan = handler.plan
        this.#at = handler.target
        this.#value = thrown.error
        this.#others = thrown.others
        return
      }
    }
    throw thrown
  }

  #instructions(): unknown {
    for (;;) {
      const instruction = this.#plan[this.#at++]
      if (instruction.code === Do.calls) {
        let value = this.#value
        const functions = instruction.part as readonly ((x: unknown) => unknown)[]
        for (let index = 0; index < functions.length; index += 1) value = functions[index](value)
        this.#value = value
      } else if (instruction.code === Do.wait) {
        if (this.#wait(instruction.part as Wait)) return WAITING
      } else if (instruction.code === Do.end) {
        const frame = this.#frames.pop()
        if (frame === undefined) return this.#value
        this.#plan = frame.plan
        this.#at = frame.at
      } else this.#do(instruction)
    }
  }

  /** `#instructions`, with the time between two instructions added to the stage of the first. */
  #measuredInstructions(profile: Profile): unknown {
    for (;;) {
      const instruction = this.#plan[this.#at++]
      this.#clock(instruction.node && measureOf(profile, instruction.node))
      if (instruction.code === Do.wait) {
        if (this.#wait(instruction.part as Wait)) return WAITING
      } else if (instruction.code === Do.end) {
        const frame = this.#frames.pop()
        if (frame === undefined) return this.#value
        this.#plan = frame.plan
        this.#at = frame.at
      } else if (instruction.code === Do.calls) {
        for (const fn of instruction.part as readonly ((x: unknown) => unknown)[])
          this.#value = fn(this.#value)
      } else this.#do(instruction)
    }
  }

  #clock(next: Measure | undefined): void {
    if (this.#profile === undefined) return
    const nowMs = performance.now()
    if (this.#clocked !== undefined) this.#clocked.ms += nowMs - this.#clockMs
    if (next !== undefined) next.calls += 1
    this.#clocked = next
    this.#clockMs = nowMs
  }

  /** Start a stage. Returns whether the run waits for it. */
  #wait(wait: Wait): boolean {
    const input = this.#value
    const value = depth < DEPTH_MAX ? this.#begun(wait, input) : this.#begunLater(wait, input)
    const promise = promiseOf(value)
    if (promise === undefined) {
      this.#value = valueOf(value)
      return stepAside(this)
    }
    this.#holds = wait.kind !== 'async'
    whenSettled(
      promise,
      (settled) => this.#resume(settled),
      (reason) => this.#fail(reason),
    )
    return true
  }

  #begun(wait: Wait, input: unknown): unknown {
    depth += 1
    try {
      return wait.start(input, this)
    } finally {
      depth -= 1
    }
  }

  async #begunLater(wait: Wait, input: unknown): Promise<unknown> {
    await undefined
    if (this.givenSignal?.aborted === true) throw new Stopped(this.givenSignal.reason)
    return this.#begun(wait, input)
  }

  #resume(value: unknown): void {
    if (this.#reject === undefined) return
    if (this.#letGo()) return this.#over()?.(new Stopped(this.givenSignal?.reason))
    this.#value = valueOf(value)
    if (stepAside(this)) this.#lookAround()
    else this.#goOn()
  }

  resume(): void {
    if (this.#reject !== undefined) this.#goOn()
  }

  #fail(reason: unknown): void {
    if (this.#reject === undefined) return
    if (this.#letGo()) {
      const signal = this.givenSignal as AbortSignal
      return this.#over()?.(new Stopped(signal.reason, besides(reason, signal)))
    }
    try {
      this.#recover(reason)
    } catch (thrown) {
      return this.#over()?.(thrown)
    }
    if (stepAside(this)) this.#lookAround()
    else this.#goOn()
  }

  #goOn(): void {
    let value: unknown
    try {
      value = this.#untilWaiting()
    } catch (thrown) {
      return this.#over()?.(thrown)
    }
    if (value === WAITING) return this.#lookAround()
    const resolve = this.#resolve
    this.#over()
    resolve?.(this.#isPlain ? value : settled(value))
  }

  #do(instruction: Instruction): void {
    const { code } = instruction
    if (code <= Do.fail || code === Do.tap) return this.#stage(instruction)
    if (code <= Do.drop || code >= Do.swap) return this.#move(instruction)
    if (code <= Do.jump) return this.#turn(instruction)
    this.#control(instruction)
  }

  #stage({ code, part }: Instruction): void {
    switch (code) {
      case Do.call:
        this.#value = (part as (x: unknown) => unknown)(this.#value)
        return
      case Do.step:
        this.#value = (part as ArrowNode).step(this.#value as never)
        return
      case Do.constant:
        this.#value = part
        return
      case Do.tap:
        ;(part as (x: unknown) => unknown)(this.#value)
        return
      default:
        throw new Raised(part)
    }
  }

  #move({ code, part }: Instruction): void {
    const stack = this.#stack
    const value = this.#value as readonly unknown[]
    switch (code) {
      case Do.save:
        return void stack.push(value)
      case Do.exchange:
        this.#value = stack[stack.length - 1]
        stack[stack.length - 1] = value
        return
      case Do.combine:
        this.#value = (part as (one: unknown, other: unknown) => unknown)(stack.pop(), value)
        return
      case Do.pair:
        this.#value = [stack.pop(), value]
        return
      case Do.pairBack:
        this.#value = [value, stack.pop()]
        return
      case Do.openFirst:
        stack.push(value[1])
        this.#value = value[0]
        return
      case Do.openSecond:
        stack.push(value[0])
        this.#value = value[1]
        return
      case Do.restore:
        this.#value = stack.pop()
        return
      case Do.drop:
        return void stack.pop()
      case Do.swap:
        this.#value = [value[1], value[0]]
        return
      case Do.dup:
        this.#value = [value, value]
        return
      default:
        this.#value = code === Do.fst ? value[0] : value[1]
    }
  }

  #turn({ code, target }: Instruction): void {
    const one = this.#value as { readonly kind: unknown; readonly value: unknown } | undefined
    switch (code) {
      case Do.ifLeft:
        if (one?.kind === 'left') this.#value = one.value
        else if (one?.kind === 'right') this.#at = target
        else notEither(one, 'left()')
        return
      case Do.ifRight:
        if (one?.kind === 'right') this.#value = one.value
        else if (one?.kind === 'left') this.#at = target
        else notEither(one, 'right()')
        return
      case Do.choose:
        if (one?.kind === 'right') this.#at = target
        else if (one?.kind !== 'left') notEither(one, 'choice()')
        this.#value = one.value
        return
      case Do.makeLeft:
      case Do.makeRight:
        this.#value = either(code === Do.makeLeft, one)
        return
      case Do.test:
        this.#value = either(one, this.#stack.pop())
        return
      case Do.branch:
        this.#value = this.#stack.pop()
        if (!(one as unknown)) this.#at = target
        return
      default:
        this.#at = target
    }
  }

  #control({ code, part, target }: Instruction): void {
    switch (code) {
      case Do.tryFailure:
        return this.#guard(target, '')
      case Do.tryName:
        return this.#guard(-1, part as string)
      case Do.untry:
        return void this.#handlers.pop()
      case Do.raise:
        throw new Raised((part as (error: unknown) => unknown)(this.#value), this.#others)
      case Do.bind: {
        const next = (part as (value: unknown) => unknown)(this.#value)
        this.#value = this.#stack.pop()
        if (!recognise.isArrow(next))
          throw wrong(
            'the result of the function of flatMap() or catchAll()',
            'an arrow, such as succeed(value)',
            next,
          )
        return this.#enter(next as ArrowNode)
      }
      default:
        this.#enter(part as ArrowNode)
    }
  }

  #guard(target: number, name: string): void {
    const stackLength = this.#stack.length
    this.#handlers.push({
      plan: this.#plan,
      target,
      name,
      stackLength,
      framesLength: this.#frames.length,
    })
  }

  /** Continue with another node's plan; return to this one unless nothing is left to do here. */
  #enter(node: ArrowNode): void {
    if ((node.flags & (ASYNC | DYNAMIC | BIG)) === 0) {
      this.#value = node.step(this.#value as never)
      return
    }
    if (this.#plan[this.#at].code !== Do.end) this.#frames.push({ plan: this.#plan, at: this.#at })
    profileOf(node).runs += 1
    this.#plan = planOf(node, 'plain').instructions
    this.#at = 0
  }
}
