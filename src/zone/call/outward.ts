/**
 * Submits calls to a zone whose workers are processes: what only this process has is refused.
 *
 * Frames have the numbers of this process, which its workers ask for. Memory and handles have numbers too,
 * which mean nothing in another process.
 */
import type { ZoneSettings } from '../api/settings.ts'
import type { CallZone, LimitedCall, ValueCall } from './call.ts'
import type { Order } from './order.ts'
import { Submitter } from './submitter.ts'

/** The submitter of a zone in this thread. */
export function submitterOf(zone: CallZone, settings: ZoneSettings): Submitter {
  const submitter = new Submitter(zone, settings)
  // In a process of the zone the zone is that process.
  return settings.isolation === 'thread' || submitter.isOwn ? submitter : new OutwardSubmitter(zone, settings)
}

class OutwardSubmitter extends Submitter {
  override send(fn: number, args: readonly unknown[], arrival: ValueCall | LimitedCall): number {
    const { writer } = this.bridge
    writer.isInside = false
    try {
      return super.send(fn, args, arrival)
    } finally {
      writer.isInside = true
    }
  }

  override sendAs(
    order: Order | undefined,
    fn: number,
    args: readonly unknown[],
    arrival: ValueCall | LimitedCall,
  ): number {
    const { writer } = this.bridge
    writer.isInside = false
    try {
      return super.sendAs(order, fn, args, arrival)
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
