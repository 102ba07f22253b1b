/**
 * The base of both zones: `map`, `forEach`, `reduce` and `stream` through the zone's `Spreader`.
 *
 * Their types and descriptions are those of `AnyZone`.
 */
import type { Spreader } from '../parallel/engine.ts'
import type { AnyIterable } from '../parallel/map-options.ts'
import { type ZoneStream, stream } from '../stream/stream.ts'
import { forEach, map, reduce } from '../parallel/parallel.ts'

export abstract class Spread {
  protected abstract readonly spreader: Spreader

  map(items: AnyIterable<unknown>, fn: Function, options?: unknown): never {
    return map(this.spreader, items, fn, options) as never
  }

  forEach(items: AnyIterable<unknown>, fn: Function, options?: unknown): Promise<void> {
    return forEach(this.spreader, items, fn, options)
  }

  reduce(items: AnyIterable<unknown>, fn: Function, initial: unknown, options?: unknown): Promise<never> {
    return reduce(this.spreader, items, fn, initial, options, arguments.length > 2) as Promise<never>
  }

  stream(fn: unknown, source: unknown, options?: unknown): ZoneStream<never> {
    return stream(this.spreader, fn, source, options) as ZoneStream<never>
  }
}
