/**
 * What the bench refuses to do, with a code, the facts and one sentence.
 *
 * Not a CorespunError on purpose: the bench must be able to report why Corespun itself did not load.
 */

/** Each code of the bench and the facts its sentence is made of. */
export interface BenchCodes {
  readonly WRONG_ANSWER: {
    readonly contender: string
    readonly work: string
    readonly got: string
    readonly expected: string
  }
  readonly UNKNOWN_TABLE: { readonly name: string; readonly known: string }
  readonly UNKNOWN_PARAMETER: { readonly name: string; readonly table: string; readonly known: string }
  readonly BAD_PARAMETER: { readonly name: string; readonly received: string; readonly expected: string }
  readonly BAD_RECORD: { readonly path: string; readonly why: string }
  readonly NO_RECORD: { readonly what: string; readonly folder: string }
  readonly NOT_HERE: { readonly what: string; readonly why: string }
  readonly CONTENDER_DIED: { readonly contender: string; readonly why: string }
}

const SENTENCES: { readonly [Code in keyof BenchCodes]: (facts: BenchCodes[Code]) => string } = {
  WRONG_ANSWER: ({ contender, work, got, expected }) =>
    `refused: ${contender} answered ${work} with ${got} instead of ${expected}; nothing is ` +
    `reported or recorded`,
  UNKNOWN_TABLE: ({ name, known }) => `no table is called ${name}; there are: ${known}`,
  UNKNOWN_PARAMETER: ({ name, table, known }) =>
    `table ${table} has no parameter --${name}; it has: ${known}`,
  BAD_PARAMETER: ({ name, received, expected }) => `--${name} must be ${expected}; received ${received}`,
  BAD_RECORD: ({ path, why }) => `${path} is not a record: ${why}`,
  NO_RECORD: ({ what, folder }) => `no record matches ${what} in ${folder}`,
  NOT_HERE: ({ what, why }) => `${what} cannot be measured here: ${why}`,
  CONTENDER_DIED: ({ contender, why }) => `the process of ${contender} ended: ${why}`,
}

/** A refusal of the bench. */
export class BenchError<Code extends keyof BenchCodes = keyof BenchCodes> extends Error {
  override readonly name = 'BenchError'
  readonly code: Code
  readonly facts: BenchCodes[Code]

  /** @param code Which refusal. @param facts What it is about. */
  constructor(code: Code, facts: BenchCodes[Code]) {
    super(SENTENCES[code](facts))
    this.code = code
    this.facts = facts
  }
}

/**
 * Compare an answer of a contender with the known one.
 * @throws {BenchError} `WRONG_ANSWER` when they differ; the bench then reports nothing.
 */
export function checkAnswer(facts: {
  contender: string
  work: string
  got: unknown
  expected: unknown
}): void {
  const got = shownAnswer(facts.got)
  const expected = shownAnswer(facts.expected)
  if (got !== expected) throw new BenchError('WRONG_ANSWER', { ...facts, got, expected })
}

function shownAnswer(value: unknown): string {
  return value === undefined ? 'undefined' : (JSON.stringify(value) ?? String(value))
}
