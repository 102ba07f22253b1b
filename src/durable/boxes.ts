/**
 * The signals that wait for a run, in one value with a revision: none is lost, and none is kept twice.
 *
 * Who sends one writes it here first and then looks whether the run waits outside of memory, in which case
 * its item is replaced by one that waits for nothing.
 */
import { type Entry, certainly, isDone } from '../fleet/internal.ts'
import { RunError, type RunFacts, readable } from './errors.ts'
import type { Room } from './room.ts'
import { RECORD_BYTES, type Signal, readBox, writeBox } from './records.ts'

/** What a box has. @throws {RunError} `RUN_UNREADABLE`. */
export const signalsIn = (run: RunFacts, box: Entry | undefined): readonly Signal[] =>
  readable(run, 'signals', () => readBox(box?.bytes))

/**
 * Removes those that were received.
 * @throws {RunError} `RUN_UNREADABLE`. @throws {FleetError} `FLEET_CONFLICT` when another is sent meanwhile.
 */
export async function forgetSignals(
  { boxes }: Room,
  run: RunFacts,
  received: ReadonlySet<string>,
): Promise<void> {
  const box = await boxes.get(run.key)
  const kept = signalsIn(run, box)
  const left = kept.filter(({ id }) => !received.has(id))
  if (box === undefined || left.length === kept.length) return
  if (left.length === 0) await boxes.delete(run.key, box.revision)
  else await boxes.put(run.key, writeBox(left), { revision: box.revision })
}

/**
 * @param isFirst Whether they are received before those that wait already.
 * @param isEnd Whether they are ends of children, for which there is room beside what users send.
 * @throws {RunError} `RUN_TOO_LARGE`, `RUN_UNREADABLE`.
 */
export async function keepSignals(
  { engine, boxes }: Room,
  run: RunFacts,
  signals: readonly Signal[],
  isFirst = false,
  isEnd = false,
): Promise<void> {
  const bytesMax = engine.messageBytesMax - (isEnd ? 0 : RECORD_BYTES)
  await certainly(engine, async () => {
    for (;;) {
      const box = await boxes.get(run.key)
      const waiting = signalsIn(run, box)
      // Others were written, and not confirmed.
      const fresh = signals.filter(({ id }) => !waiting.some((kept) => kept.id === id))
      if (fresh.length === 0) return
      const bytes = writeBox(isFirst ? [...fresh, ...waiting] : [...waiting, ...fresh])
      if (bytes.length > bytesMax)
        throw new RunError('RUN_TOO_LARGE', { what: 'what waits of signals', bytes: bytes.length, bytesMax })
      if (await isDone(boxes.put(run.key, bytes, { revision: box?.revision ?? 0 }))) return
    }
  })
}
