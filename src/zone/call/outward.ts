/**
 * Submits calls to a zone whose workers are processes: what only this process has is refused.
 *
 * Frames have the numbers of this process, which its workers ask for. Memory and handles have numbers too,
 * which mean nothing in another process.
 */
import type { ZoneSettings } from '../ground/settings.ts'
import type { CallRecord } from '../ground/record.ts'
import type { CallZone } from './call.ts'
import { Submitter } from './submitter.ts'

export function submitterOf(zone: CallZone, settings: ZoneSettings): Submitter {
  const submitter = new Submitter(zone, settings)
  // In a process of the zone the zone is that process.
  return settings.isolation === 'thread' || submitter.isOwn ? submitter : new OutwardSubmitter(zone, settings)
}

class OutwardSubmitter extends Submitter {
  protected override write(args: readonly unknown[], record: CallRecord | undefined): number {
    const { writer } = this.bridge
    writer.isInside = false
    try {
      return super.write(args, record)
    } finally {
      writer.isInside = true
    }
  }

  override frame(args: readonly unknown[]): Uint8Array {
    const { writer } = this.bridge
    writer.isInside = false
    try {
      return super.frame(args)
    } finally {
      writer.isInside = true
    }
  }
}
