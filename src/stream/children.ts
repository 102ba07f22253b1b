/**
 * The fibers beside a run: they begin in it, end before it does, and no error of theirs is lost.
 *
 * A fiber that fails does so through its passage: the run fails with it in its turn. When nobody needs the
 * items any more, what still goes wrong is as that of the losers of a race.
 */
import { isThenable } from '../base/index.ts'
import { Exit, type Fiber, type Operation } from '../fiber/index.ts'
import {
  type Child,
  Nursery,
  decided,
  exitWithin,
  forkIn,
  inNursery,
  troublesBeside,
  withErrors,
} from '../fiber/internal.ts'
import { Boxed, type Failed, type Passage } from './passage.ts'
import type { Emit, Run } from './run.ts'

/** Why fibers are interrupted whose items nobody needs. */
const ENDED = Exit.interruption('its stream has ended')

export class Children extends Nursery {
  /** How errors call the stage. */
  readonly stage: string
  /** Fibers that have failed by themselves. */
  readonly failed: Fiber[] = []

  constructor(host: Fiber, stage: string) {
    super(host)
    this.stage = stage
  }

  override childEnded(child: Child): void {
    const { exit } = child
    if (exit === undefined || exit.kind === 'success') return
    if (this.isClosing) return super.childEnded(child)
    ;(child as Fiber).observe()
    this.failed.push(child as Fiber)
  }

  /** What a fiber has failed with by itself is the run's in its turn, which did not come. */
  protected override troublesOf(child: Fiber): Failed[] {
    return troublesBeside(child)
  }

  /** Run a stream in a fiber; it passes its items to `emit`, and its end to the passage. */
  produce(passage: Passage, run: Run, emit: Emit = passage.put): void {
    passage.open()
    forkIn(this, () => run(emit)).addWaiter({
      waitsFor: () => true,
      wakeBy: (fiber) => {
        const exit = (fiber as Fiber).exit as Exit<unknown, unknown>
        if (exit.kind !== 'success') passage.fail(exit)
        passage.close()
      },
    })
  }

  /** Run a body in a fiber: its value, or a promise of it. @throws {Failed} its exit. */
  call(work: (item: unknown) => unknown, item: unknown): unknown {
    const fiber = forkIn(this, work, item)
    if (fiber.exit !== undefined) return valueOf(fiber.exit)
    return new Promise((resolve, reject) =>
      fiber.addWaiter({
        waitsFor: () => true,
        wakeBy: () => {
          const exit = fiber.exit as Exit<unknown, unknown>
          if (exit.kind === 'success') resolve(boxed(exit.value))
          else reject(exit)
        },
      }),
    )
  }
}

function valueOf(exit: Exit<unknown, unknown>): unknown {
  if (exit.kind === 'success') return boxed(exit.value)
  throw exit
}

function boxed(value: unknown): unknown {
  return isThenable(value) ? new Boxed(value) : value
}

/** Runs `work` beside the fibers that it begins in its children. */
export function beside<A>(
  call: string,
  work: (children: Children) => Operation<A, unknown>,
): Operation<A, unknown> {
  return inNursery(call, work, decidedBeside as never, (host) => new Children(host, call))
}

function* decidedBeside<A>(
  children: Children,
  work: (children: Children) => Operation<A, unknown>,
): Operation<A, unknown> {
  let exit: Exit<A, unknown> | undefined
  try {
    exit = (yield* exitWithin(() => work(children))) as Exit<A, unknown>
  } finally {
    // Interrupted: what went wrong beside their failures is not lost.
    if (exit === undefined)
      for (const trouble of children.failed.flatMap(troublesBeside)) children.host.more().addError(trouble)
  }
  if (exit.kind === 'success') {
    yield* children.dismiss(ENDED, children.stage)
    return exit.value
  }
  // What it has failed with has all that went wrong in that fiber.
  const others = children.failed.filter((child) => child.exit !== exit).flatMap(troublesBeside)
  return yield* decided(children, withErrors(exit, others) as Failed)
}
