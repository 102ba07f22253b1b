/**
 * Which of the seeds this process plays, and what it reports to `corespun test`, which starts several.
 *
 * `CORESPUN_SEEDS_PART=2/4` is each fourth seed from the second on, in any runner. Seed 0 is in every part.
 */
import { type SeedRange, messageOf } from '../base/index.ts'
import { CheckError, wrong } from './errors.ts'

/** A check has begun. */
export interface CheckBegun {
  readonly kind: 'begun'
  readonly file: string
  readonly line: number
}

/** What has become of one check. */
export interface CheckReport {
  readonly kind: 'check'
  readonly file: string
  readonly line: number
  readonly seeds: number
  readonly steps: number
  /** A number for each schedule that was played. */
  readonly traces: readonly number[]
  /** Absent if no seed has failed. */
  readonly found?: { readonly code: string; readonly seed: number; readonly message: string }
}

/** Of a message, so that one part of a channel has it; as many of its end, which has the command. */
const MESSAGE_CHARS_MAX = 16_384
const MESSAGE_END_CHARS = 4096

/**
 * Those of a range that are of this part.
 * @throws {CheckError} `CHECK_ARGUMENT` if CORESPUN_SEEDS_PART is not a part.
 */
export function ofPart({ first, last }: SeedRange): Iterable<number> {
  const { CORESPUN_SEEDS_PART: text = '1/1' } = process.env
  const [at, of] = /^\d{1,4}\/\d{1,4}$/.test(text) ? text.split('/').map(Number) : [0, 0]
  if (at < 1 || at > of) throw wrong('CORESPUN_SEEDS_PART', 'a part such as 2/4', text)
  return every(first + at - 1, last, of)
}

function* every(first: number, last: number, step: number): Generator<number> {
  for (let seed = first; seed <= last; seed += step) yield seed
}

/** The file that `corespun test` has started, as its user has written it. */
export function fileOfCommand(): string | undefined {
  return process.send === undefined ? undefined : process.env['CORESPUN_TEST_FILE']
}

let isWatching = false

/** Waits for a check, and reports it. @param where File and line of the call. */
export async function reported<Checked extends { readonly seeds: number; readonly steps: number }>(
  [file, line]: readonly [string, string],
  checked: Promise<Checked>,
  traces: ReadonlySet<number>,
): Promise<Checked> {
  if (fileOfCommand() === undefined) return checked
  if (!isWatching) {
    isWatching = true
    // The command was killed. A listener would keep the process alive.
    process.once('disconnect', () => process.exit(1))
    process.channel?.unref()
  }
  const of = { kind: 'check', file, line: Number(line) } as const
  /** Resolves when it is sent: the caller may end the process then. */
  const send = (report: CheckBegun | CheckReport): Promise<unknown> =>
    new Promise((sent) => process.send!(report, sent))
  void send({ ...of, kind: 'begun' })
  try {
    const { seeds, steps } = await checked
    await send({ ...of, seeds, steps, traces: [...traces] })
  } catch (error) {
    const { code, facts } = error instanceof CheckError ? error : { code: '', facts: {} }
    const { seed = 0 } = facts as { readonly seed?: number }
    await send({
      ...of,
      seeds: 0,
      steps: 0,
      traces: [],
      found: { code, seed, message: shortened(messageOf(error)) },
    })
  }
  return checked
}

/** The beginning and the end of a message that is too long. */
function shortened(message: string): string {
  if (message.length <= MESSAGE_CHARS_MAX) return message
  const head = message.slice(0, MESSAGE_CHARS_MAX - MESSAGE_END_CHARS)
  return `${head}\n...\n${message.slice(-MESSAGE_END_CHARS)}`
}
