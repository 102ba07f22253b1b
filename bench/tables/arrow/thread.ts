/**
 * A thread of the arrow table: two of them do the same slice at the same moment.
 *
 * Each has arrows, inputs and programs of its own; nothing is shared, as nothing is between threads of Node.
 */
import { Worker, isMainThread, parentPort } from 'node:worker_threads'
import { BenchError } from '../../harness/errors.ts'
import { METHODS, type Loops, loopsOf, rate } from './methods.ts'
import { type Compute, type Programs, COMPUTES, computePrograms, filePrograms, perMs } from './programs.ts'

/** One slice: a method's loop, or a contender's program. */
export type Slice =
  | { readonly label: string; readonly loop: keyof Loops; readonly sliceMs: number }
  | { readonly section: Compute | 'files'; readonly contender: string; readonly sliceMs: number }

/** Threads that do slices together. */
export class Threads {
  readonly #workers: readonly Worker[]

  private constructor(workers: readonly Worker[]) {
    this.#workers = workers
  }

  /** Start so many; their arrows are warm when this resolves. */
  static async start(count: number): Promise<Threads> {
    const workers = Array.from({ length: count }, () => new Worker(new URL(import.meta.url)))
    await Promise.all(workers.map(answerOf))
    return new Threads(workers)
  }

  /** What all do together in one slice, million/s of a method and thousand/s of a program. */
  async slice(slice: Slice): Promise<number> {
    const answers = Promise.all(this.#workers.map(answerOf))
    for (const worker of this.#workers) worker.postMessage(slice)
    return (await answers).reduce((sum, figure) => sum + figure, 0)
  }

  /** Ends them. */
  async end(): Promise<void> {
    for (const worker of this.#workers) worker.postMessage('end')
    await Promise.all(this.#workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve))))
  }
}

function answerOf(worker: Worker): Promise<number> {
  return new Promise((resolve, reject) => {
    const settle = (end: () => void): void => {
      worker.off('message', answered)
      worker.off('error', failed)
      end()
    }
    const answered = (figure: number): void => settle(() => resolve(figure))
    const failed = (error: unknown): void => settle(() => reject(error))
    worker.on('message', answered)
    worker.on('error', failed)
  })
}

async function serve(port: NonNullable<typeof parentPort>): Promise<void> {
  const loops = new Map(METHODS.map((method) => [method.label, loopsOf(method)]))
  const files = await filePrograms()
  const programs: Record<string, Programs> = { files: files.programs }
  for (const name of COMPUTES) programs[name] = await computePrograms(name)
  const act = async (slice: Slice | 'end'): Promise<void> => {
    if (slice === 'end') {
      files.remove()
      port.close()
    } else if ('label' in slice) port.postMessage(rate(loops.get(slice.label)![slice.loop], slice.sliceMs))
    else {
      const [of, expected] = [programs[slice.section], await programs[slice.section]['plain']()]
      const program = of[slice.contender]
      const got = await program()
      if (got !== expected) {
        const facts = { contender: slice.contender, work: slice.section, got: String(got) }
        throw new BenchError('WRONG_ANSWER', { ...facts, expected: String(expected) })
      }
      port.postMessage(await perMs(program, slice.sliceMs))
    }
  }
  // A rejection ends the thread, which the table reports.
  port.on('message', (slice: Slice | 'end') => void act(slice))
  port.postMessage(0)
}

if (!isMainThread && parentPort !== null) await serve(parentPort)
