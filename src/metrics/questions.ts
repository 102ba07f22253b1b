/**
 * Questions to threads about what they alone have: their connections to fleets.
 *
 * A thread that counts and has connections listens, and is interrupted by questions alone. Who asks names
 * the threads and a function of a module, which those load then. One that does not respond is not waited for.
 * A thread whose workers are processes listens for them, and passes questions and replies on.
 */
import { BroadcastChannel, threadId } from 'node:worker_threads'
import { messageOf, meters } from '../base/index.ts'
import { here } from '../zone/internal.ts'

const QUESTIONS = 'corespun:questions'

/** As it is received: `args` are those of each thread that is asked. */
export interface Question {
  /** The channel of who asks. */
  readonly from: string
  readonly id: number
  readonly module: string
  readonly name: string
  readonly args: Readonly<Record<string, readonly unknown[]>>
}

/** As it is sent: `from` is not in it. */
export interface Reply {
  readonly id: number
  readonly thread: string
  readonly result?: unknown
  readonly problem?: string
}

/** By the names of their threads: workers of this one that are processes and have connections. */
export const processes = new Map<string, { ask(question: Question): void }>()

/** @returns Called once a second: the thread of that name listens while somebody has connections. */
export function answers(thread: string): () => void {
  let channel: BroadcastChannel | undefined
  return () => {
    if (meters.fleets.size + processes.size === 0) {
      channel?.close()
      channel = undefined
    } else if (channel === undefined) {
      channel = listening(QUESTIONS, (question: Question) => {
        if (Object.hasOwn(question.args, thread)) void answer(question, thread).then(replyTo(question.from))
        // Where the fleets of others lead may have their credentials.
        for (const [name, child] of processes)
          if (Object.hasOwn(question.args, name))
            child.ask({ ...question, args: { [name]: question.args[name] } })
      })
      channel.unref()
    }
  }
}

/** What the thread of that name responds, which is this one. */
export async function answer({ id, module, name, args }: Question, thread: string): Promise<Reply> {
  try {
    const functions = (await here.load(module)) as Record<string, (...args: readonly unknown[]) => unknown>
    return { id, thread, result: await functions[name](...args[thread]) }
  } catch (error) {
    return { id, thread, problem: messageOf(error) }
  }
}

/** Whether it is the channel of one who asks. */
export function isAsker(from: unknown): from is string {
  return typeof from === 'string' && /^corespun:questions:\d+$/.test(from)
}

/** Returns what sends a reply to who has asked. */
export function replyTo(from: string): (reply: Reply) => void {
  return (reply) => {
    const replies = new BroadcastChannel(from)
    replies.postMessage(reply)
    replies.close()
  }
}

function listening<Message>(name: string, received: (message: Message) => void): BroadcastChannel {
  const channel = new BroadcastChannel(name)
  channel.addEventListener('message', (event) => received((event as unknown as { data: Message }).data))
  return channel
}

let last = 0

/**
 * Call a function of a module in other threads, with arguments of each.
 * @returns In their order what each has returned, or an error: it has failed, or not responded.
 */
export async function ask<Result>(
  { module, name }: Pick<Question, 'module' | 'name'>,
  args: Question['args'],
  timeoutMs: number,
): Promise<PromiseSettledResult<Result>[]> {
  const threads = Object.keys(args)
  if (threads.length === 0) return []
  const id = ++last
  const from = `${QUESTIONS}:${threadId}`
  const waiting = new Map<string, (reply: Omit<Reply, 'id' | 'thread'>) => void>()
  const results = threads.map(
    (thread) =>
      new Promise<Result>((resolve, reject) => {
        waiting.set(thread, ({ result, problem }) =>
          problem === undefined ? resolve(result as Result) : reject(new Error(problem)),
        )
      }),
  )
  const replies = listening(from, (reply: Reply) => {
    if (reply.id === id) waiting.get(reply.thread)?.(reply)
  })
  const timer = setTimeout(() => {
    const silent = (thread: string): string => `${thread} has not responded within ${timeoutMs} ms`
    for (const [thread, settle] of waiting) settle({ problem: silent(thread) })
  }, timeoutMs)
  const questions = new BroadcastChannel(QUESTIONS)
  questions.postMessage({ from, id, module, name, args } satisfies Question)
  questions.close()
  const settled = await Promise.allSettled(results)
  clearTimeout(timer)
  replies.close()
  return settled
}
