/**
 * The first tier: how small synchronous nodes run before code is generated for them.
 *
 * Every operation has two functions. The first run of a node calls `once...`, which only replaces itself by
 * `again...`, so that nothing escapes when an arrow is composed and run once: the engine then allocates no
 * object. `again...` counts the runs, lets every 64th be measured, and finally asks for generated code. The
 * functions are written out and not made by a factory because each needs call feedback of its own.
 */
import { either, notEither } from '../build/either.ts'
import { Raised, traced } from '../build/failure.ts'
import { tierUp } from './tiering.ts'
import { OpCode, type Attempt, type ArrowNode } from '../build/node.ts'

type Pair = readonly [unknown, unknown]
type One = { readonly kind: unknown; readonly value: unknown }
type Combine = (one: unknown, other: unknown) => unknown

/** Every 64th run is measured. */
const MEASURED_MASK = 63

function onceChain(this: ArrowNode, x: unknown): unknown {
  this.run = this.step = againChain
  return this.b!.step(this.a!.step(x as never) as never)
}

function againChain(this: ArrowNode, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  return this.b!.step(this.a!.step(x as never) as never)
}

function onceCompose(this: ArrowNode, x: unknown): unknown {
  this.run = this.step = againCompose
  return this.b!.step(this.a!.step(x as never) as never)
}

function againCompose(this: ArrowNode, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  return this.b!.step(this.a!.step(x as never) as never)
}

function onceZip(this: ArrowNode, x: unknown): unknown {
  this.run = this.step = againZip
  return (this.data as Combine)(this.a!.step(x as never), this.b!.step(x as never))
}

function againZip(this: ArrowNode, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  return (this.data as Combine)(this.a!.step(x as never), this.b!.step(x as never))
}

function onceMerge(this: ArrowNode, x: unknown): unknown {
  this.run = this.step = againMerge
  return [this.a!.step(x as never), this.b!.step(x as never)]
}

function againMerge(this: ArrowNode, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  return [this.a!.step(x as never), this.b!.step(x as never)]
}

function onceSplit(this: ArrowNode, x: unknown): unknown {
  this.run = this.step = againSplit
  const second = (x as Pair)[1]
  return [this.a!.step((x as Pair)[0] as never), this.b!.step(second as never)]
}

function againSplit(this: ArrowNode, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  const second = (x as Pair)[1]
  return [this.a!.step((x as Pair)[0] as never), this.b!.step(second as never)]
}

function onceFirst(this: ArrowNode, x: unknown): unknown {
  this.run = this.step = againFirst
  const second = (x as Pair)[1]
  return [this.a!.step((x as Pair)[0] as never), second]
}

function againFirst(this: ArrowNode, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  const second = (x as Pair)[1]
  return [this.a!.step((x as Pair)[0] as never), second]
}

function onceSecond(this: ArrowNode, x: unknown): unknown {
  this.run = this.step = againSecond
  return [(x as Pair)[0], this.a!.step((x as Pair)[1] as never)]
}

function againSecond(this: ArrowNode, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  return [(x as Pair)[0], this.a!.step((x as Pair)[1] as never)]
}

function onceLeft(this: ArrowNode, x: unknown): unknown {
  this.run = this.step = againLeft
  const { kind } = (x ?? notEither(x, 'left()')) as One
  if (kind === 'left') return either(true, this.a!.step((x as One).value as never))
  return kind === 'right' ? x : notEither(x, 'left()')
}

function againLeft(this: ArrowNode, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  const { kind } = (x ?? notEither(x, 'left()')) as One
  if (kind === 'left') return either(true, this.a!.step((x as One).value as never))
  return kind === 'right' ? x : notEither(x, 'left()')
}

function onceRight(this: ArrowNode, x: unknown): unknown {
  this.run = this.step = againRight
  const { kind } = (x ?? notEither(x, 'right()')) as One
  if (kind === 'right') return either(false, this.a!.step((x as One).value as never))
  return kind === 'left' ? x : notEither(x, 'right()')
}

function againRight(this: ArrowNode, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  const { kind } = (x ?? notEither(x, 'right()')) as One
  if (kind === 'right') return either(false, this.a!.step((x as One).value as never))
  return kind === 'left' ? x : notEither(x, 'right()')
}

function onceChoice(this: ArrowNode, x: unknown): unknown {
  this.run = this.step = againChoice
  const { kind } = (x ?? notEither(x, 'choice()')) as One
  if (kind === 'left') return this.a!.step((x as One).value as never)
  return kind === 'right' ? this.b!.step((x as One).value as never) : notEither(x, 'choice()')
}

function againChoice(this: ArrowNode, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  const { kind } = (x ?? notEither(x, 'choice()')) as One
  if (kind === 'left') return this.a!.step((x as One).value as never)
  return kind === 'right' ? this.b!.step((x as One).value as never) : notEither(x, 'choice()')
}

function onceTest(this: ArrowNode, x: unknown): unknown {
  this.run = this.step = againTest
  return either(this.a!.step(x as never), x)
}

function againTest(this: ArrowNode, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  return either(this.a!.step(x as never), x)
}

function onceBranch(this: ArrowNode, x: unknown): unknown {
  this.run = this.step = againBranch
  return this.a!.step(x as never) ? this.b!.step(x as never) : (this.data as ArrowNode).step(x as never)
}

function againBranch(this: ArrowNode, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  return this.a!.step(x as never) ? this.b!.step(x as never) : (this.data as ArrowNode).step(x as never)
}

function onceEffect(this: ArrowNode, x: unknown): unknown {
  this.run = this.step = againEffect
  this.a!.step(x as never)
  return x
}

function againEffect(this: ArrowNode, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  this.a!.step(x as never)
  return x
}

function onceLoop(this: ArrowNode, x: unknown): unknown {
  this.run = this.step = againLoop
  let value = x
  while (this.a!.step(value as never)) value = this.b!.step(value as never)
  return value
}

function againLoop(this: ArrowNode, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  let value = x
  while (this.a!.step(value as never)) value = this.b!.step(value as never)
  return value
}

function stepTap(this: ArrowNode, x: unknown): unknown {
  ;(this.data as (x: unknown) => unknown)(x)
  return x
}

function stepConstant(this: ArrowNode): unknown {
  return this.data
}

function stepFail(this: ArrowNode): unknown {
  throw new Raised(this.data)
}

function stepAttempt(this: ArrowNode, x: unknown): unknown {
  const { body, catcher } = this.data as Attempt
  return attempted(body, catcher, x)
}

/** Call `body`. @throws {Raised} with the result of `catcher` for what it throws. */
function attempted(body: Attempt['body'], catcher: Attempt['catcher'], x: unknown): unknown {
  try {
    return body(x)
  } catch (thrown) {
    throw new Raised(catcher(thrown))
  }
}

function stepMapError(this: ArrowNode, x: unknown): unknown {
  const fuel = --this.fuel
  if ((fuel & MEASURED_MASK) === MEASURED_MASK || fuel <= 0) return tierUp(this, x)
  try {
    return this.a!.step(x as never)
  } catch (thrown) {
    if (!(thrown instanceof Raised)) throw thrown
    throw new Raised((this.data as (error: unknown) => unknown)(thrown.error))
  }
}

function stepNamed(this: ArrowNode, x: unknown): unknown {
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

/** The steps of nodes without children: at most one call, so they are not counted. */
export const LEAF_STEPS = Object.freeze({ unchanged, swapped, doubled, firstOf, secondOf })

/** The steps of nodes that may fail or come from another thread: counted from the first run on. */
export const COUNTED_STEPS: { readonly [Code in OpCode]?: (this: ArrowNode, x: never) => unknown } = {
  [OpCode.chain]: againChain,
  [OpCode.zip]: againZip,
  [OpCode.merge]: againMerge,
  [OpCode.split]: againSplit,
  [OpCode.first]: againFirst,
  [OpCode.second]: againSecond,
  [OpCode.left]: againLeft,
  [OpCode.right]: againRight,
  [OpCode.choice]: againChoice,
  [OpCode.test]: againTest,
  [OpCode.branch]: againBranch,
  [OpCode.effect]: againEffect,
  [OpCode.loop]: againLoop,
  [OpCode.mapError]: stepMapError,
  [OpCode.named]: stepNamed,
}

/** The steps of first runs, which are not counted: a node that still has one has never run. */
export const FIRST_STEPS: {
  readonly [Code in OpCode]?: readonly ((this: ArrowNode, x: never) => unknown)[]
} = {
  [OpCode.chain]: [onceChain, onceCompose],
  [OpCode.zip]: [onceZip],
  [OpCode.merge]: [onceMerge],
  [OpCode.split]: [onceSplit],
  [OpCode.first]: [onceFirst],
  [OpCode.second]: [onceSecond],
  [OpCode.left]: [onceLeft],
  [OpCode.right]: [onceRight],
  [OpCode.choice]: [onceChoice],
  [OpCode.test]: [onceTest],
  [OpCode.effect]: [onceEffect],
}

/** In one object: an exported function with `this` looks like a mistake. */
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
