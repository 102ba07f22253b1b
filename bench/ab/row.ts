/**
 * What a section of the A/B comparison hands to its process.
 *
 * A file of its own, so that sections and the list of them import it without a circle.
 */

/** One row: `run` does so many operations, in each turn of a slice `batch` of them. */
export interface Row {
  readonly batch: number
  readonly run: (times: number) => unknown
}

/** Rows by name; made in order, each when it is first needed. */
export type Rows = Readonly<Record<string, () => Row | Promise<Row>>>
