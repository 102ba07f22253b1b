/**
 * Programs of contenders on the JVM: built once by Maven, then asked line by line.
 *
 * A program waits on its standard input and answers each line with one line of JSON, so that its turns lie
 * between those of the others in the same run. Without Java or Maven a table runs without them and reports
 * so.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createInterface, type Interface } from 'node:readline'
import { endProcess } from './child.ts'
import { BenchError } from './errors.ts'
import { BENCH_FOLDER, DIST_FOLDER } from './paths.ts'

/** The collector and the heap of the anchors' runs. */
const OPTIONS = ['-XX:+UseG1GC', '-Xms1g', '-Xmx1g']

/**
 * The command of the program in bench/contenders/`name`, whose main class is `Main`; `undefined` when it
 * cannot be here, and `skip` receives the reason. Maven runs once for each state of the sources, and keeps
 * what it fetches where it always does.
 */
export function jvmCommand(
  name: string,
  skip: (what: string, why: string) => void,
): readonly string[] | undefined {
  const java = spawnSync('java', ['-version'], { stdio: 'ignore' })
  if (java.status !== 0) {
    skip(name, 'not here: no Java (java)')
    return undefined
  }
  const [from, to] = [`${BENCH_FOLDER}/contenders/${name}`, `${DIST_FOLDER}/contenders/${name}`]
  const why = isBuilt(from, to) ? undefined : build(from, to)
  if (why !== undefined) {
    skip(name, why)
    return undefined
  }
  return ['java', ...OPTIONS, '-cp', `${to}/classes:${classpathOf(to)}`, 'Main']
}

/** Built from these sources, and what it depends on is still where Maven had put it. */
function isBuilt(from: string, to: string): boolean {
  if (!existsSync(`${to}/state`) || readFileSync(`${to}/state`, 'utf8') !== stateOf(from)) return false
  return classpathOf(to)
    .split(':')
    .every((path) => existsSync(path))
}

function classpathOf(to: string): string {
  return readFileSync(`${to}/classpath`, 'utf8').trim()
}

/** Why it could not be built; `undefined` when it was. */
function build(from: string, to: string): string | undefined {
  console.error(`bench: building ${from.slice(BENCH_FOLDER.length + 1)} (once)`)
  mkdirSync(to, { recursive: true })
  const how = ['--quiet', '--batch-mode', '-Dstyle.color=never', `-Dbench.folder=${to}`]
  const built = spawnSync('mvn', [...how, '--file', `${from}/pom.xml`, 'compile'], { encoding: 'utf8' })
  if (built.error !== undefined) return 'not here: no Maven (mvn)'
  if (built.status !== 0) {
    const errors = built.stdout.split('\n').filter((line) => /\[(ERROR|FATAL)\] ./.test(line))
    return `not here: mvn failed: ${errors.slice(0, 2).join(' ') || built.stderr.split('\n')[0]}`
  }
  writeFileSync(`${to}/state`, stateOf(from))
  return undefined
}

/** What its sources are, in a few letters. */
function stateOf(folder: string): string {
  const hash = createHash('sha256')
  const files = ['pom.xml', ...readdirSync(`${folder}/src`).map((name) => `src/${name}`)]
  for (const name of files.sort()) hash.update(`${name}\n`).update(readFileSync(`${folder}/${name}`))
  return hash.digest('hex')
}

/** A running program. */
export class Jvm {
  readonly #contender: string
  readonly #process: ChildProcess
  readonly #lines: Interface
  /** Rejects when the process ends; most end when the bench does, and then nobody waits. */
  readonly #died: Promise<never>

  constructor(contender: string, [command, ...words]: readonly string[]) {
    this.#contender = contender
    this.#process = spawn(command, words, { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#process.stdin!.on('error', () => {}) // shows as the exit
    this.#lines = createInterface(this.#process.stdout!)
    const exited = once(this.#process, 'exit').then(([code, signal]) => `exit ${String(code ?? signal)}`)
    this.#died = exited
      .catch((error: Error) => error.message)
      .then((why) => {
        throw new BenchError('CONTENDER_DIED', { contender, why })
      })
    this.#died.catch(() => {})
  }

  /**
   * The answer to a line; the first answer of all is to the start, whose `line` is undefined.
   * @throws {BenchError} `WRONG_ANSWER` when the program reports a wrong result,
   *   `CONTENDER_DIED` when it ends.
   */
  async ask(line?: string): Promise<Readonly<Record<string, unknown>>> {
    const answer = once(this.#lines, 'line')
    if (line !== undefined) this.#process.stdin!.write(`${line}\n`)
    const [text] = (await Promise.race([answer, this.#died])) as [string]
    const arrived = JSON.parse(text) as Record<string, unknown>
    if (arrived.wrong === undefined) return arrived
    const { work, got, expected } = arrived.wrong as { work: string; got: string; expected: string }
    throw new BenchError('WRONG_ANSWER', { contender: this.#contender, work, got, expected })
  }

  /** It goes when its input ends. */
  async end(): Promise<void> {
    this.#process.stdin!.end()
    if (this.#process.pid !== undefined) await endProcess(this.#process)
  }
}
