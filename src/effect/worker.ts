/**
 * The worker's side of a call: loaded by its URL, in the worker.
 *
 * The Effect that a function returns is run here, by the ManagedRuntime that the zone's `setup` has returned
 * or without services. The end of the task's signal interrupts its fiber. The exit travels as a value.
 */
import type { Cause } from 'effect/Cause'
import * as Effect from 'effect/Effect'
import type { Exit } from 'effect/Exit'
import * as ManagedRuntime from 'effect/ManagedRuntime'
import { promiseOf } from '../base/index.ts'
import { functionByNumber } from '../transport/internal.ts'
import { type Task, currentTask } from '../zone/index.ts'
import { here } from '../zone/internal.ts'
import { type Carried, contextOf } from './carried.ts'
// oxlint-disable-next-line import/no-unassigned-import -- registers what arguments contain
import './classes.ts'

/** How a task has ended; a value as a property, so that streams in it are found. */
export type Reply =
  | { readonly value: unknown }
  | { readonly cause: Cause<unknown> }
  | { readonly thrown: unknown }

/** Run the function of that number, and the Effect that it returns. */
export async function runTask(number: number, args: readonly unknown[], carried: Carried): Promise<Reply> {
  const fn = await functionByNumber(number)
  const task = currentTask()
  let value: unknown
  try {
    value = fn.apply(task, args)
    if (promiseOf(value) !== undefined) value = await value
  } catch (thrown) {
    return { thrown }
  }
  if (!Effect.isEffect(value)) return { value }
  const exit = await exitIn(
    task,
    Effect.provideContext(value as Effect.Effect<unknown, unknown>, contextOf(carried)),
  )
  return exit._tag === 'Success' ? { value: exit.value } : { cause: exit.cause }
}

function exitIn(
  task: Task | undefined,
  effect: Effect.Effect<unknown, unknown, never>,
): Promise<Exit<unknown, unknown>> {
  const runtime: unknown = here.state?.value
  const options = { signal: task?.signal }
  return ManagedRuntime.isManagedRuntime(runtime)
    ? runtime.runPromiseExit(effect, options)
    : Effect.runPromiseExit(effect, options)
}

/** The end of a worker whose zone has no `teardown` of its own: the finalizers of its layers run. */
export async function teardown(state: unknown): Promise<void> {
  if (ManagedRuntime.isManagedRuntime(state)) await state.dispose()
}
