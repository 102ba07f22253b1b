/**
 * The interpreter: runs plans, waits where they wait, and stops when it is told to.
 *
 * One interpreter is one run. It works through instructions until one of them gives a promise; then it hands out
 * a promise of its own and goes on when that one settles. Interruption is looked at wherever it waits, and
 * the stage that was waited for hears of it by its signal. An asynchronous function is left behind: the run
 * ends there at once. All other stages end by themselves, when their finalizers have run, and so does the
 * run. What settles at once makes steps of the fibers' budget: when they are used up the run goes on behind
 * timers and I/O, so its own timeout and signal are heard.
 */
import { abortSignal, isThenable, promiseOf, valueOfKind, whenSettled } from '../../base/index.ts'
import { type Failed, type Fiber } from '../../fiber/index.ts'
import { type Ready, runningFiber, stepAside } from '../../fiber/internal.ts'
import { either } from '../build/either.ts'
import { wrong } from '../errors.ts'
import { Raised, Stopped, besides, traced } from '../build/failure.ts'
import { ASYNC, BIG, DYNAMIC, HOT_RUNS, type Node, type RunContext, type Wait } from '../build/node.ts'
import { Do, buildPlan, type Grain, type Instruction, type Plan } from './plan.ts'

/** What has been measured of a stage. */
export interface Measure {
  calls: number
  ms: number
}

/** What the tiers know of a node. */
export interface Profile {
  plain: Plan | undefined
  fused: Plan | undefined
  /** The fused plan where it is one call. */
  whole: ((input: unknown) => unknown) | undefined
  measured: Plan | undefined
  /**
   * Runs by the interpreter, the measured ones among them. Of small synchronous nodes: those that were counted
   * before the fuel was set anew.
   */
  runs: number
  /** Runs that were measured. */
  measuredRuns: number
  /** By node, and weakly: runs measure also the arrows that `flatMap` and `catchAll` make while they run. */
  measures: WeakMap<Node, Measure>
}

/**
 * Every so manieth run by a interpreter is measured, and the first; later ones less often: of an arrow of
 * hundreds of quick stages a measured run takes ten times as long as another.
 */
const [MEASURE_EACH, MEASURE_EACH_LATER] = [64, 1024]
const LATER_RUNS = 4096
/** Stages that wait and run others inside of them start on the stack up to so many deep, others later. */
const DEPTH_MAX = 200

/** What is known of a node; empty at first. */
export function profileOf(node: Node): Profile {
  return (node.profile ??= {
    plain: undefined,
    fused: undefined,
    whole: undefined,
    measured: undefined,
    runs: 0,
    measuredRuns: 0,
    measures: new WeakMap<Node, Measure>(),
  } satisfies Profile) as Profile
}

function planOf(node: Node, grain: Grain): Plan {
  const profile = profileOf(node)
  if (grain === 'measured') return (profile.measured ??= buildPlan(node, grain))
  if (profile.fused !== undefined) return profile.fused
  if (profile.runs < HOT_RUNS) return (profile.plain ??= buildPlan(node, 'plain'))
  profile.plain = undefined
  profile.fused = buildPlan(node, 'fused')
  const [first, second] = profile.fused.instructions
  if (first?.code === Do.call && second?.code === Do.end)
    profile.whole = first.part as (input: unknown) => unknown
  return profile.fused
}

/** The value of a run that has a `then`: a promise of it would wait for it, and it is a value. */
class Settled {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }
}

function settled(value: unknown): unknown {
  return isThenable(value) ? new Settled(value) : value
}

/** The value that {@link runNode} has returned, or that its promise has. */
export function valueOf(settled: unknown): unknown {
  return settled instanceof Settled ? settled.value : settled
}

/** The symbol by which a interpreter's loop says that it waits. */
const WAITING = Symbol('waiting')

/** How to recognise an arrow among what functions of users return; set by arrow.ts. @internal */
export const recognise: { isArrow: (value: unknown) => boolean } = { isArrow: () => false }

/**
 * Run a node: its value, or a promise of it where it waits, which is to be read by {@link valueOf}. What is
 * thrown, or rejected with, is wrapped if it is a failure.
 * @param signal Interrupts it.
 * @param fiber The fiber that it belongs to. Default: the one whose code runs.
 * @param isPlain The promise may wait for a value that has a `then`: nobody reads it by {@link valueOf}.
 */
export function runNode(
  node: Node,
  input: unknown,
  signal: AbortSignal | undefined,
  fiber?: Fiber | undefined,
  isPlain = false,
): unknown {
  if ((node.flags & (ASYNC | DYNAMIC | BIG)) === 0) return node.step(input as never)
  const profile = profileOf(node)
  const measured = profile.runs % (profile.runs < LATER_RUNS ? MEASURE_EACH : MEASURE_EACH_LATER) === 0
  profile.runs += 1
  // Without a interpreter around it the engine has room to compile what it calls together with it.
  if (profile.whole !== undefined && !measured && signal === undefined) return profile.whole(input)
  return new Interpreter(
    node,
    input,
    signal,
    fiber ?? runningFiber(),
    measured ? profile : undefined,
    isPlain,
  ).start()
}

/** Run a small synchronous node once, measuring its stages. */
export function measuredStep(node: Node, input: unknown): unknown {
  return new Interpreter(node, input, undefined, undefined, profileOf(node), true).start()
}

/** How many stages that wait are being started, one inside the other. */
let depth = 0

interface Handler {
  readonly plan: readonly Instruction[]
  /** Where a failure goes; -1: only the name is written. */
  readonly target: number
  readonly name: string
  readonly stackLength: number
  readonly framesLength: number
}

interface Frame {
  readonly plan: readonly Instruction[]
  readonly at: number
}

class Interpreter implements RunContext, Ready {
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
  /** What it waits for ends by itself when the signal is aborted, and is waited for. */
  #holds = false
  #listens = false
  /** Of the failure that is being handled. */
  #others: readonly Failed[] | undefined
  #clocked: Measure | undefined
  #clockMs = 0

  constructor(
    node: Node,
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

  /** See StageContext. */
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
   * It waits now. A stage may have aborted the signal that interrupts this run; what holds hears of it by
   * itself: interpreters inside of each other do not all listen.
   */
  #lookAround(): void {
    const signal = this.givenSignal
    if (signal === undefined || this.#holds) return
    if (signal.aborted) return this.#aborted()
    if (this.#listens) return
    this.#listens = true
    signal.addEventListener('abort', this.#aborted)
  }

  readonly #aborted = (): void => {
    if (!this.#holds) this.#over()?.(new Stopped(this.givenSignal?.reason))
  }

  /** It waits no more. Whether what it held on to has ended because of the signal, which ends the run. */
  #letGo(): boolean {
    const held = this.#holds
    this.#holds = false
    return held && this.givenSignal?.aborted === true
  }

  /** Nothing more happens in this run; the way to tell its caller why, if nobody has been told. */
  #over(): ((reason: unknown) => void) | undefined {
    const reject = this.#reject
    this.#resolve = this.#reject = undefined
    if (this.#listens) this.givenSignal?.removeEventListener('abort', this.#aborted)
    return reject
  }

  /** The value, or WAITING. */
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

  /** The same, with the time between two instructions added to the stage of the first. */
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

  /** Start a stage that waits; whether it does wait. */
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

  /** It has had to step aside. */
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
        this.#value = (part as Node).step(this.#value as never)
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
    const one = this.#value as { readonly kind: string; readonly value: unknown }
    switch (code) {
      case Do.ifLeft:
      case Do.ifRight:
        if ((one.kind === 'left') === (code === Do.ifLeft)) this.#value = one.value
        else this.#at = target
        return
      case Do.choose:
        if (one.kind !== 'left') this.#at = target
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
          throw wrong('what the function of flatMap or catchAll returns', 'an arrow', next)
        return this.#enter(next as Node)
      }
      default:
        this.#enter(part as Node)
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

  /** Go on with another node's plan and come back; not back when nothing is left to do here. */
  #enter(node: Node): void {
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

function measureOf(profile: Profile, node: Node): Measure {
  let measure = profile.measures.get(node)
  if (measure === undefined) profile.measures.set(node, (measure = { calls: 0, ms: 0 }))
  return measure
}
