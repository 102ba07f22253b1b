/**
 * A contender's whole command: runs it and returns its standard output.
 *
 * A command that fails ends the table, with what it wrote to standard error.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { BenchError } from '../../harness/errors.ts'
import { BENCH_FOLDER } from '../../harness/paths.ts'

const COMMAND_MS_MAX = 120_000

/**
 * @param args Of this Node.
 * @throws {BenchError} `CONTENDER_DIED` when it fails or takes longer than two minutes.
 */
export async function outputOf(contender: string, args: readonly string[]): Promise<string> {
  return (await outputsOf(contender, args)).printed
}

/** What a command wrote to standard output, and to descriptor 3. */
export interface Outputs {
  readonly printed: string
  readonly aside: string
}

/** As `outputOf`. */
export async function outputsOf(contender: string, args: readonly string[]): Promise<Outputs> {
  const stdio = ['ignore', 'pipe', 'pipe', 'pipe'] as const
  const child = spawn(process.execPath, args, { cwd: BENCH_FOLDER, stdio: [...stdio] })
  const late = setTimeout(() => child.kill('SIGKILL'), COMMAND_MS_MAX)
  const [printed, complaint, aside]: [Buffer[], Buffer[], Buffer[]] = [[], [], []]
  for (const [index, pieces] of [printed, complaint, aside].entries())
    child.stdio[index + 1]?.on('data', (piece: Buffer) => pieces.push(piece))
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  clearTimeout(late)
  if (code === 0)
    return { printed: Buffer.concat(printed).toString(), aside: Buffer.concat(aside).toString() }
  const why = `exit ${code ?? signal}: ${Buffer.concat(complaint).toString().slice(0, 500)}`
  throw new BenchError('CONTENDER_DIED', { contender, why })
}
