/**
 * The first tier: how small synchronous nodes run before code is generated for them.
 *
 * Every operation has two functions. The first run of a node goes through `once...`, which only puts
 * `again...` in its place, so that composing and running once lets nothing escape: the engine then makes no
 * object at all. `again...` counts, lets some runs be measured, and asks for generated code in the end. They
 * look alike on purpose and are not made by one function: each must have call feedback of its own.
 */
import { either } from '../build/either.ts'
import { Raised, traced } from '../build/failure.ts'
import { tierUp } from './tiering.ts'
import { Op, type Attempt, type Node, type OpCode } from '../build/node.ts'

type Pair = readonly [unknown, unknown]
type One = { readonly kind: 'left' | 'right'; readonly value: unknown }
type Combine = (one: unknown, other: unknown) => unknown

/** Which runs are not plain: every 64th, and the one that no fuel is left for. */
const MEASURED_MASK = 63

/** First run: see the file's text. */
function onceChain(this: Node, x: unknown): unknown {
  this.run = this.step = againChain
  return this.b!.step(this.a!.step(x as never) as never)
}

/** Later runs. */
function againChain(this: Node, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  return this.b!.step(this.a!.step(x as never) as never)
}

/** First run: see the file's text. */
function onceCompose(this: Node, x: unknown): unknown {
  this.run = this.step = againCompose
  return this.b!.step(this.a!.step(x as never) as never)
}

/** Later runs. */
function againCompose(this: Node, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  return this.b!.step(this.a!.step(x as never) as never)
}

/** First run: see the file's text. */
function onceZip(this: Node, x: unknown): unknown {
  this.run = this.step = againZip
  return (this.data as Combine)(this.a!.step(x as never), this.b!.step(x as never))
}

/** Later runs. */
function againZip(this: Node, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  return (this.data as Combine)(this.a!.step(x as never), this.b!.step(x as never))
}

/** First run: see the file's text. */
function onceMerge(this: Node, x: unknown): unknown {
  this.run = this.step = againMerge
  return [this.a!.step(x as never), this.b!.step(x as never)]
}

/** Later runs. */
function againMerge(this: Node, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  return [this.a!.step(x as never), this.b!.step(x as never)]
}

/** First run: see the file's text. */
function onceSplit(this: Node, x: unknown): unknown {
  this.run = this.step = againSplit
  const second = (x as Pair)[1]
  return [this.a!.step((x as Pair)[0] as never), this.b!.step(second as never)]
}

/** Later runs. */
function againSplit(this: Node, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  const second = (x as Pair)[1]
  return [this.a!.step((x as Pair)[0] as never), this.b!.step(second as never)]
}

/** First run: see the file's text. */
function onceFirst(this: Node, x: unknown): unknown {
  this.run = this.step = againFirst
  const second = (x as Pair)[1]
  return [this.a!.step((x as Pair)[0] as never), second]
}

/** Later runs. */
function againFirst(this: Node, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  const second = (x as Pair)[1]
  return [this.a!.step((x as Pair)[0] as never), second]
}

/** First run: see the file's text. */
function onceSecond(this: Node, x: unknown): unknown {
  this.run = this.step = againSecond
  return [(x as Pair)[0], this.a!.step((x as Pair)[1] as never)]
}

/** Later runs. */
function againSecond(this: Node, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  return [(x as Pair)[0], this.a!.step((x as Pair)[1] as never)]
}

/** First run: see the file's text. */
function onceLeft(this: Node, x: unknown): unknown {
  this.run = this.step = againLeft
  return (x as One).kind === 'left' ? either(true, this.a!.step((x as One).value as never)) : x
}

/** Later runs. */
function againLeft(this: Node, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  return (x as One).kind === 'left' ? either(true, this.a!.step((x as One).value as never)) : x
}

/** First run: see the file's text. */
function onceRight(this: Node, x: unknown): unknown {
  this.run = this.step = againRight
  return (x as One).kind === 'left' ? x : either(false, this.a!.step((x as One).value as never))
}

/** Later runs. */
function againRight(this: Node, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  return (x as One).kind === 'left' ? x : either(false, this.a!.step((x as One).value as never))
}

/** First run: see the file's text. */
function onceChoice(this: Node, x: unknown): unknown {
  this.run = this.step = againChoice
  return (x as One).kind === 'left'
    ? this.a!.step((x as One).value as never)
    : this.b!.step((x as One).value as never)
}

/** Later runs. */
function againChoice(this: Node, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  return (x as One).kind === 'left'
    ? this.a!.step((x as One).value as never)
    : this.b!.step((x as One).value as never)
}

/** First run: see the file's text. */
function onceTest(this: Node, x: unknown): unknown {
  this.run = this.step = againTest
  return either(this.a!.step(x as never), x)
}

/** Later runs. */
function againTest(this: Node, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  return either(this.a!.step(x as never), x)
}

/** First run: see the file's text. */
function onceBranch(this: Node, x: unknown): unknown {
  this.run = this.step = againBranch
  return this.a!.step(x as never) ? this.b!.step(x as never) : (this.data as Node).step(x as never)
}

/** Later runs. */
function againBranch(this: Node, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  return this.a!.step(x as never) ? this.b!.step(x as never) : (this.data as Node).step(x as never)
}

/** First run: see the file's text. */
function onceEffect(this: Node, x: unknown): unknown {
  this.run = this.step = againEffect
  this.a!.step(x as never)
  return x
}

/** Later runs. */
function againEffect(this: Node, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  this.a!.step(x as never)
  return x
}

/** First run: see the file's text. */
function onceLoop(this: Node, x: unknown): unknown {
  this.run = this.step = againLoop
  let value = x
  while (this.a!.step(value as never)) value = this.b!.step(value as never)
  return value
}

/** Later runs. */
function againLoop(this: Node, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  let value = x
  while (this.a!.step(value as never)) value = this.b!.step(value as never)
  return value
}

/** A function whose value is not used. */
function stepTap(this: Node, x: unknown): unknown {
  ;(this.data as (x: unknown) => unknown)(x)
  return x
}

/** Always the same value. */
function stepConstant(this: Node): unknown {
  return this.data
}

/** Always the same failure. @throws {Raised} always. */
function stepFail(this: Node): unknown {
  throw new Raised(this.data)
}

/** A function whose throws are failures. */
function stepAttempt(this: Node, x: unknown): unknown {
  const { body, catcher } = this.data as Attempt
  return attempted(body, catcher, x)
}

/** Call `body`; what it throws is a failure, unless `catcher` throws in turn. @throws {Raised} */
function attempted(body: Attempt['body'], catcher: Attempt['catcher'], x: unknown): unknown {
  try {
    return body(x)
  } catch (thrown) {
    throw new Raised(catcher(thrown))
  }
}

/** The failure of `a`, mapped. @throws {Raised} */
function stepMapError(this: Node, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  try {
    return this.a!.step(x as never)
  } catch (thrown) {
    if (!(thrown instanceof Raised)) throw thrown
    throw new Raised((this.data as (error: unknown) => unknown)(thrown.error))
  }
}

/** `a`, its name in the stacks of errors. @throws what `a` throws. */
function stepNamed(this: Node, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  try {
    return this.a!.step(x as never)
  } catch (thrown) {
    throw traced(thrown, this.data as string)
  }
}

const unchanged = (x: unknown): unknown => x
const swapped = (x: Pair): unknown => [x[1], x[0]]
const doubled = (x: unknown): unknown => [x, x]
const firstOf = (x: Pair): unknown => x[0]
const secondOf = (x: Pair): unknown => x[1]

/** How nodes without children run; they need no counting, being one call at most. */
export const LEAF_STEPS = Object.freeze({ unchanged, swapped, doubled, firstOf, secondOf })

/** How a node runs that may fail, or that is not new: counting from the start. */
export const COUNTED_STEPS: { readonly [Code in OpCode]?: (this: Node, x: never) => unknown } = {
  [Op.chain]: againChain,
  [Op.zip]: againZip,
  [Op.merge]: againMerge,
  [Op.split]: againSplit,
  [Op.first]: againFirst,
  [Op.second]: againSecond,
  [Op.left]: againLeft,
  [Op.right]: againRight,
  [Op.choice]: againChoice,
  [Op.test]: againTest,
  [Op.branch]: againBranch,
  [Op.effect]: againEffect,
  [Op.loop]: againLoop,
  [Op.mapError]: stepMapError,
  [Op.named]: stepNamed,
}

/** Functions of first runs, which are not counted. A node that has one of them still has never run. */
export const FIRST_STEPS: { readonly [Code in OpCode]?: readonly ((this: Node, x: never) => unknown)[] } = {
  [Op.chain]: [onceChain, onceCompose],
  [Op.zip]: [onceZip],
  [Op.merge]: [onceMerge],
  [Op.split]: [onceSplit],
  [Op.first]: [onceFirst],
  [Op.second]: [onceSecond],
  [Op.left]: [onceLeft],
  [Op.right]: [onceRight],
  [Op.choice]: [onceChoice],
  [Op.test]: [onceTest],
  [Op.effect]: [onceEffect],
}

/** All of them, by name; in one object, since `this` in what is exported looks like a mistake. */
export const STEPS = Object.freeze({
  againBranch,
  againChain,
  againChoice,
  againCompose,
  againEffect,
  againFirst,
  againLeft,
  againLoop,
  againMerge,
  againRight,
  againSecond,
  againSplit,
  againTest,
  againZip,
  onceBranch,
  onceChain,
  onceChoice,
  onceCompose,
  onceEffect,
  onceFirst,
  onceLeft,
  onceLoop,
  onceMerge,
  onceRight,
  onceSecond,
  onceSplit,
  onceTest,
  onceZip,
  stepAttempt,
  stepConstant,
  stepFail,
  stepMapError,
  stepNamed,
  stepTap,
})
