/**
 * The worker of piscina in the fiber table.
 *
 * One export, the same function that zones run.
 */
import { partialSum, type Sum } from './sums.ts'

/** What a task is given. */
export interface TaskInput {
  readonly first: number
  readonly stride: number
  readonly num: number
}

/** Run one task. */
export default function task({ first, stride, num }: TaskInput): Sum {
  return partialSum(first, stride, num)
}
