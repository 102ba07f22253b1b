/**
 * What every zone does with many items, the calling thread's own zone too: `map`, `forEach`, `reduce`.
 *
 * A zone says how wide it is and how a chunk is executed; how items are cut and put together is in
 * parallel.ts.
 */
import {
  type Items,
  type MapOptions,
  type ReduceOptions,
  type Settled,
  type Source,
  type SpreadOptions,
  type Spreader,
  forEach,
  map,
  reduce,
} from './parallel.ts'

/** The common base of the zones of workers and of `zone.node`. */
export abstract class Spread {
  protected abstract readonly spreader: Spreader

  /**
   * Run a function on every item, on all workers, and keep the order. Of an array or a typed array: a promise
   * of all values. Of another iterable or an async one: an async iterable of the values, which reads its
   * input only as far ahead as the workers can use, so the input may be endless.
   *
   * Items travel in chunks whose size follows from what items were measured to cost; a full zone is waited
   * for, and what is too large for it goes in parts, down to single items. The function must be able to
   * travel (see `run`), may be asynchronous, and gets the item and its index. The first error, in the order
   * of items, is thrown, and what comes after it and has not started never does; aborting the signal does the
   * same. With `settle` errors are outcomes instead; with `ordered: false` an iterable's values come as they
   * are ready.
   * @throws {ZoneError} `ZONE_ARGUMENT` for wrong arguments, when the result is waited for.
   */
  map<Item, Value>(
    items: Items<Item>,
    fn: (item: Item, index: number) => Value,
    options: MapOptions & { readonly settle: true },
  ): Promise<Settled<Awaited<Value>>[]>
  map<Item, Value>(
    items: Items<Item>,
    fn: (item: Item, index: number) => Value,
    options?: MapOptions & { readonly settle?: false },
  ): Promise<Awaited<Value>[]>
  map<Item, Value>(
    items: Source<Item>,
    fn: (item: Item, index: number) => Value,
    options: MapOptions & { readonly settle: true },
  ): AsyncGenerator<Settled<Awaited<Value>>, void, undefined>
  map<Item, Value>(
    items: Source<Item>,
    fn: (item: Item, index: number) => Value,
    options?: MapOptions & { readonly settle?: false },
  ): AsyncGenerator<Awaited<Value>, void, undefined>
  map(items: Source<unknown>, fn: Function, options?: MapOptions): never {
    return map(this.spreader, items, fn, options) as never
  }

  /**
   * The same for what it does: resolves when all items are done, keeps nothing. The first error in time ends
   * it.
   */
  forEach<Item>(
    items: Source<Item>,
    fn: (item: Item, index: number) => unknown,
    options?: SpreadOptions,
  ): Promise<void> {
    return forEach(this.spreader, items, fn, options)
  }

  /**
   * Fold the items into one value: each chunk in a worker, from `initial`, and the partial results, in order,
   * here. So `initial` is used once per chunk and must be neutral, as 0 is for sums; and where the sum is of
   * another kind than the items, `combine` says how two partial sums are added. Either may
   * return a promise of the sum. The function may change the sum that it is given: each chunk has a copy of
   * `initial`.
   */
  reduce<Item, Sum>(
    items: Source<Item>,
    fn: (sum: Sum, item: Item, index: number) => Sum | PromiseLike<Sum>,
    initial: Sum,
    options?: ReduceOptions<Sum>,
  ): Promise<Sum> {
    return reduce(this.spreader, items, fn, initial, options) as Promise<Sum>
  }
}
