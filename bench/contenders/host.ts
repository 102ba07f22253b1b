/**
 * The process of one contender: takes orders from the bench by its IPC channel, one at a time.
 *
 * Started with the contender's name as its argument; ends when the channel closes.
 */
import { BenchError } from '../harness/errors.ts'
import type { Contender } from './contender.ts'
import { type Jobs, jobsOf } from './jobs.ts'

/** An order as it travels. */
export interface Order {
  readonly job: keyof Jobs
  readonly order: unknown
}

/** A result or a refusal as it travels. */
export type Outcome =
  | { readonly result: unknown }
  | { readonly code: string | undefined; readonly facts: unknown; readonly text: string }

const { default: contender } = (await import(`./${fileOf(process.argv[2])}.js`)) as { default: Contender }
const jobs = jobsOf(contender)

// Never rejected: what a job throws is its outcome.
process.on('message', ({ job, order }: Order) => {
  void outcomeOf(job, order).then((outcome) => process.send!(outcome))
})
process.on('disconnect', () => process.exit(0))

async function outcomeOf(job: keyof Jobs, order: unknown): Promise<Outcome> {
  try {
    return { result: await jobs[job](order as never) }
  } catch (error) {
    if (error instanceof BenchError) return { code: error.code, facts: error.facts, text: error.message }
    return {
      code: undefined,
      facts: undefined,
      text: error instanceof Error ? String(error.stack) : String(error),
    }
  }
}

/** 'postMessage' lives in post-message.js. */
function fileOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
