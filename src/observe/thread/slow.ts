/**
 * The slow tasks and requests of the process, which its core keeps: no other thread has to answer for that.
 *
 * Nothing is slow before it is clear what is usual, so the first question begins to count.
 */
import { integer, optionsOf, refuser } from '../../base/index.ts'
import { beginCounting, slowRecords } from '../../metrics/internal.ts'
import { ObserveError } from '../errors.ts'
import type { Asked } from '../protocol.ts'

const wrong = refuser((facts) => new ObserveError('OBSERVE_ARGUMENT', facts))
const KINDS = { after: integer(0, 2 ** 32 - 1, 0) }

/** Those after a number, the oldest first. */
export async function slow({ params }: Asked): Promise<unknown> {
  const { after } = optionsOf(params, KINDS, wrong, 'slow')
  beginCounting()
  return { records: slowRecords(after) }
}
