/**
 * `run.explain()`: a run as text, a line for each step: what is recorded, runs or remains, with times.
 *
 * What remains is known of an arrow alone, whose stages follow each other. What another process runs is
 * reported late: the first stage that remains has begun no earlier than the last record was written.
 */
import { durationText, oneLine, reasonOf } from '../base/index.ts'
import { keyOf } from './keys.ts'
import type { RunState, RunStep } from './state.ts'

type Since = (date: Date) => string

/** @param stages The names of the stages of an arrow, in order; none of a generator function. */
export function explained(name: string, state: RunState, stages: readonly string[], nowMs: number): string {
  const { key, status, startedAt, endedAt, steps, running, error } = state
  const since: Since = (date) => durationText((endedAt?.getTime() ?? nowMs) - date.getTime())
  const lines = new Map(steps.map((step) => [step.key, stepText(step, since)]))
  for (const { key: at, startedAt: begun } of running) lines.set(at, `running for ${since(begun)}`)
  const remaining = keysOf(stages).filter((stage) => !lines.has(stage))
  for (const stage of remaining) lines.set(stage, endedAt === undefined ? 'remaining' : 'not reached')
  const last = steps.reduce((latest, { at }) => (at > latest ? at : latest), startedAt)
  if (status === 'running' && running.length === 0 && remaining.length > 0)
    lines.set(remaining[0], `remaining, or running elsewhere, for ${since(last)} at most`)
  const soFar = endedAt === undefined ? ' so far' : ''
  const head = `${name} ${oneLine(key)}: ${status}, ${since(startedAt)}${soFar}`
  const width = Math.min(60, Math.max(0, ...[...lines.keys()].map((each) => each.length)))
  const body = [...lines].map(([each, text]) => `  ${oneLine(each).padEnd(width)}  ${text}`)
  return `${[head, ...body, ...(error === undefined ? [] : [`  ${oneLine(reasonOf(error))}`])].join('\n')}\n`
}

function stepText({ status, startedAt, at, dueAt, failures, error }: RunStep, since: Since): string {
  const tries = failures === 0 ? '' : `, ${failures} failed: ${oneLine(reasonOf(error))}`
  const took = startedAt === undefined ? '' : ` in ${durationText(at.getTime() - startedAt.getTime())}`
  const due = dueAt === undefined ? '' : `, due ${dueAt.toISOString()}`
  if (status === 'done') return `recorded${took}${tries}`
  if (status === 'failed') return `failed${took}${tries}`
  if (status === 'left') return `left${took}${tries}`
  return `${status} for ${since(startedAt ?? at)}${due}${tries}`
}

/** Of those with one name each has a number. */
function keysOf(stages: readonly string[]): string[] {
  return stages.map((stage, index) => {
    const before = stages.slice(0, index).filter((other) => other === stage)
    return keyOf('', stage, before.length + 1)
  })
}
