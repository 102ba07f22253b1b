/**
 * Which part of a costly test a run does: `CORESPUN_TEST_PART=2/3` is the second of three.
 *
 * A part has a third of each size and every third row of a table, so three parts have all rows. `npm test`
 * does one of three, and so does `npm run test:all`, but for what depends on the Node: the other Nodes do
 * other parts of that. Without the variable a program does the whole, as in `npm run check:long`.
 * CORESPUN_TEST_ROWS=all is for the rows of {@link leftOut}.
 */
const [PART, PARTS] = partOf(process.env['CORESPUN_TEST_PART'] ?? '1/1')

function partOf(text: string): readonly [part: number, parts: number] {
  const [, part, parts] = /^([1-9]\d*)\/([1-9]\d*)$/.exec(text) ?? []
  if (part === undefined || Number(part) > Number(parts)) {
    throw new TypeError(`CORESPUN_TEST_PART must be such as 2/3, received ${JSON.stringify(text)}`)
  }
  return [Number(part), Number(parts)]
}

/** This part of a size: of rounds, operations or seconds. */
export function share(size: number): number {
  return Math.ceil(size / PARTS)
}

/** Rows of a table that are of this part. */
export function rowsOfPart<Row>(rows: readonly Row[]): Row[] {
  return rows.filter((_, index) => isOfPart(index))
}

/** Whether the row with this index is of this part. */
function isOfPart(index: number): boolean {
  return index % PARTS === PART - 1
}

/** Why a row of a table is skipped whose rows are programs, or start zones: it is of another part. */
export function skipOf(row: number): string | false {
  return !isOfPart(row) && 'of another part: CORESPUN_TEST_PART'
}

/**
 * As {@link skipOf}, of rows that no other Node runs, or that reach lines of src that no others do: none is
 * skipped where these are counted. There CORESPUN_TEST_ROWS is all.
 */
export function leftOut(row: number): string | false {
  return process.env['CORESPUN_TEST_ROWS'] !== 'all' && skipOf(row)
}
