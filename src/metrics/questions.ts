/**
 * Questions to threads about what they alone have: their connections to fleets.
 *
 * A thread that counts and has connections listens, and is interrupted by questions alone. Who asks names
 * the thread and a function of a module, which that thread loads then. One that does not respond is not
 * waited for.
 */
import { BroadcastChannel, threadId } from 'node:worker_threads'
import { messageOf, meters } from '../base/index.ts'
import { here } from '../zone/internal.ts'

const QUESTIONS = 'corespun:questions'

interface Question {
  readonly to: string
  /** The channel of who asks. */
  readonly from: string
  readonly id: number
  readonly module: string
  readonly name: string
  readonly args: readonly unknown[]
}

interface Reply {
  readonly id: number
  readonly result?: unknown
  readonly problem?: string
}

/** @returns Called once a second: the thread of that name listens while it has connections. */
export function answers(thread: string): () => void {
  let channel: BroadcastChannel | undefined
  return () => {
    if (meters.fleets.size === 0) {
      channel?.close()
      channel = undefined
    } else if (channel === undefined) {
      channel = new BroadcastChannel(QUESTIONS)
      channel.addEventListener('message', (event) => {
        const { data } = event as unknown as { readonly data: Question }
        if (data.to === thread) void answer(data)
      })
      channel.unref()
    }
  }
}

async function answer({ from, id, module, name, args }: Question): Promise<void> {
  const replies = new BroadcastChannel(from)
  try {
    const functions = (await here.load(module)) as Record<string, (...args: readonly unknown[]) => unknown>
    replies.postMessage({ id, result: await functions[name](...args) } satisfies Reply)
  } catch (error) {
    replies.postMessage({ id, problem: messageOf(error) } satisfies Reply)
  }
  replies.close()
}

/** Asks other threads. */
export class Questions {
  readonly #module: string
  readonly #from = `${QUESTIONS}:${threadId}`
  #questions: BroadcastChannel | undefined
  readonly #waiting = new Map<number, (reply: Reply) => void>()
  #last = 0

  /** @param module Its URL; its functions are called. */
  constructor(module: string) {
    this.#module = module
  }

  #open(): BroadcastChannel {
    const replies = new BroadcastChannel(this.#from)
    replies.addEventListener('message', (event) => {
      const { data } = event as unknown as { readonly data: Reply }
      this.#waiting.get(data.id)?.(data)
    })
    return new BroadcastChannel(QUESTIONS)
  }

  /**
   * Call a function in a thread.
   * @throws {Error} What it fails with, or that the thread has not responded.
   */
  async ask(to: string, name: string, args: readonly unknown[], timeoutMs: number): Promise<unknown> {
    const id = ++this.#last
    let timer: NodeJS.Timeout | undefined
    const { result, problem } = await new Promise<Reply>((resolve) => {
      this.#waiting.set(id, resolve)
      const late = { id, problem: `${to} has not responded within ${timeoutMs} ms` }
      timer = setTimeout(() => resolve(late), timeoutMs)
      const question = { to, from: this.#from, id, module: this.#module, name, args }
      this.#questions ??= this.#open()
      this.#questions.postMessage(question satisfies Question)
    })
    clearTimeout(timer)
    this.#waiting.delete(id)
    if (problem !== undefined) throw new Error(problem)
    return result
  }
}
