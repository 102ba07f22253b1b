/**
 * The slot of a run that has a limit, while this process has the run.
 *
 * It is entered before anything of the run is written, and its loss ends the run here: others have it soon.
 */
import type { JobLimit, Lease, Refused } from '../fleet/internal.ts'
import { readHead } from './records.ts'
import type { OwnRoom } from './room.ts'

export class Slot {
  readonly #limiter: OwnRoom['limiter']
  readonly #lost: () => void
  /** Frees it; a second call does nothing. Resolves when that is written, or it ends by itself. */
  end: () => Promise<void> = async () => {}

  constructor({ limiter }: OwnRoom, lost: () => void) {
    this.#limiter = limiter
    this.#lost = lost
  }

  /** `undefined`: it has one. */
  async enter(limit: JobLimit, lease: Lease): Promise<Refused | undefined> {
    const entered = await this.#limiter.enter({
      ...{ key: lease.id, limit, isFirst: false },
      turn: readHead(lease.bytes).turn ?? 0,
      serverMs: () => lease.addedMs + lease.ageMs(),
      lost: this.#lost,
    })
    if (typeof entered !== 'function') return entered
    this.end = entered
    return undefined
  }

  /** A turn that is called in vain is free, as for a run that this process has already. */
  async free(limit: JobLimit, lease: Lease): Promise<void> {
    if (readHead(lease.bytes).turn === undefined) return
    const vain = new Slot({ limiter: this.#limiter } as OwnRoom, () => {})
    await vain.enter(limit, lease)
    await vain.end()
  }
}
