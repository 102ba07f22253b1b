/**
 * One client process of the table `service`: `client.js <plan as JSON>` asks, checks each answer, and prints
 * how it went as one line of JSON.
 *
 * Paced, a request is due whether or not those before it were answered, and its latency counts from when it
 * was due: neither a server that stalls nor a client that does shortens it. Unpaced, each
 * connection asks again as soon as it was answered.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { GREETING, heavy, SEEDS } from '../../contenders/service/work.ts'
import type { Pace } from './pacer.ts'

/** What a client is to do. */
export interface ClientPlan {
  readonly port: number
  /** The first segment of the path. */
  readonly route: 'hello' | 'zone' | 'inline'
  readonly connections: number
  readonly seconds: number
  /** Requests due in a second, over all connections; 0: as fast as answers come. */
  readonly perSecond: number
}

/** What it saw. */
export interface ClientReport {
  readonly answers: number
  /** Answers that were not the known ones, and connections that failed. */
  readonly wrong: number
  readonly seconds: number
  /** Latencies in µs; `p99.9` only where they are enough for it. */
  readonly us: Readonly<Record<'p50' | 'p99' | 'max', number> & { 'p99.9'?: number }>
}

/** What comes in the first moments, while both ends compile what they run, is checked and not counted. */
const WARM_UP_MS = 300

/** With fewer, less than ten lie beyond p99.9, and of less than a thousand it is just the longest. */
const SAMPLES_FOR_P999 = 10_000

/** One connection with at most one request on its way; others wait for their turn, and their time runs. */
class Line {
  readonly #socket: Socket
  readonly #due: {
    readonly path: string
    readonly answer: string
    readonly atMs: number
  }[] = []
  readonly #done: (us: number, isRight: boolean) => void
  #text = ''

  constructor(socket: Socket, done: (us: number, isRight: boolean) => void) {
    this.#socket = socket
    this.#done = done
    socket.setNoDelay(true).setEncoding('latin1')
    socket.on('data', (piece: string) => this.#take(piece))
  }

  ask(path: string, answer: string, atMs: number): void {
    this.#due.push({ path, answer, atMs })
    if (this.#due.length === 1) this.#send()
  }

  #send(): void {
    this.#socket.write(`GET ${this.#due[0]!.path} HTTP/1.1\r\nHost: bench\r\n\r\n`)
  }

  #take(piece: string): void {
    this.#text += piece
    const head = this.#text.indexOf('\r\n\r\n')
    if (head < 0) return
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(this.#text)?.[1] ?? NaN)
    if (this.#text.length < head + 4 + length) return
    const { answer, atMs } = this.#due.shift()!
    const isRight = this.#text.startsWith('HTTP/1.1 200 ') && this.#text.slice(head + 4) === answer
    this.#text = ''
    if (this.#due.length > 0) this.#send()
    this.#done((performance.now() - atMs) * 1000, isRight)
  }
}

console.log(JSON.stringify(await run(JSON.parse(process.argv[2]!) as ClientPlan)))

async function run(plan: ClientPlan): Promise<ClientReport> {
  const answers = Array.from({ length: SEEDS }, (_, seed) => JSON.stringify({ sum: heavy(seed) }))
  const latencies: number[] = []
  let [asked, answered, wrong] = [0, 0, 0]
  const sockets = await Promise.all(Array.from({ length: plan.connections }, () => opened(plan.port)))
  const pacer = plan.perSecond === 0 ? undefined : await startedPacer()
  const startMs = performance.now()
  const warmMs = startMs + WARM_UP_MS
  const endMs = startMs + plan.seconds * 1000
  const next = (line: Line, atMs: number): void => {
    const seed = asked++ % SEEDS
    if (plan.route === 'hello') line.ask('/hello', GREETING, atMs)
    else line.ask(`/${plan.route}/${seed}`, answers[seed]!, atMs)
  }
  const lines: Line[] = sockets.map((socket) => {
    socket.on('error', () => (wrong += 1))
    const line: Line = new Line(socket, (us, isRight) => {
      answered += 1
      if (performance.now() >= warmMs) latencies.push(us)
      if (!isRight) wrong += 1
      if (plan.perSecond === 0 && performance.now() < endMs) next(line, performance.now())
    })
    return line
  })
  if (pacer === undefined) for (const line of lines) next(line, startMs)
  else await paced(pacer, plan, startMs, (at, atMs) => next(lines[at % lines.length]!, atMs))
  const lateMs = endMs + 10_000
  while (answered < asked && performance.now() < lateMs) await soon(5)
  for (const socket of sockets) socket.destroy()
  latencies.sort((a, b) => a - b)
  const us = (share: number): number =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))]!
  const far = latencies.length < SAMPLES_FOR_P999 ? {} : { 'p99.9': us(0.999) }
  return {
    answers: answered,
    wrong: wrong + asked - answered,
    seconds: (performance.now() - startMs) / 1000,
    us: { p50: us(0.5), p99: us(0.99), max: us(1), ...far },
  }
}

/** Calls `ask` for each request when it is due, with the time it was due. */
async function paced(
  pacer: Worker,
  { perSecond, seconds }: ClientPlan,
  startMs: number,
  ask: (at: number, atMs: number) => void,
): Promise<void> {
  const gapMs = 1000 / perSecond
  const count = Math.floor(perSecond * seconds)
  const pace: Pace = { startAtMs: performance.timeOrigin + startMs, gapMs, count }
  pacer.on('message', (at: number) => ask(at, startMs + at * gapMs))
  pacer.postMessage(pace)
  await once(pacer, 'exit')
}

async function startedPacer(): Promise<Worker> {
  const pacer = new Worker(new URL('./pacer.js', import.meta.url))
  await once(pacer, 'message')
  return pacer
}

function soon(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function opened(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket))
    socket.once('error', reject)
  })
}
