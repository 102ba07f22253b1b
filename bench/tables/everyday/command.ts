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
  const child = spawn(process.execPath, args, { cwd: BENCH_FOLDER, stdio: ['ignore', 'pipe', 'pipe'] })
  const late = setTimeout(() => child.kill('SIGKILL'), COMMAND_MS_MAX)
  const [printed, complaint]: [Buffer[], Buffer[]] = [[], []]
  child.stdout.on('data', (piece: Buffer) => printed.push(piece))
  child.stderr.on('data', (piece: Buffer) => complaint.push(piece))
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  clearTimeout(late)
  if (code === 0) return Buffer.concat(printed).toString()
  const why = `exit ${code ?? signal}: ${Buffer.concat(complaint).toString().slice(0, 500)}`
  throw new BenchError('CONTENDER_DIED', { contender, why })
}
