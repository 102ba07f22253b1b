/**
 * The thread that answers on the control socket: reads a request, runs its method, writes the answer.
 *
 * A thread of its own, since the main thread may be in an endless loop, which is when somebody looks. It
 * holds nothing but the socket until the first request; each method is loaded with its first. What a client
 * sends ends in an error with a code, never in the end of this thread.
 */
import { type Server, type Socket, createServer } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { ObserveError, sentError } from '../errors.ts'
import {
  ANSWER_CHARS_MAX,
  type Method,
  REQUEST_BYTES_MAX,
  isStop,
  readLines,
  readRequest,
} from '../protocol.ts'
import { controlSockets, isAnswered, protectSocket } from '../sockets.ts'
import { type Actions, type ObserverStart, controlOf } from './control.ts'

/** What this thread reports once. */
export type ObserverNote = { readonly listening: true } | { readonly failed: string }

const start = workerData as ObserverStart
const port = parentPort!
const actions: Actions = controlOf(port, start)

let snapshot: Method | undefined

/** By name. What else can be asked of a process has its row here. */
const METHODS: Readonly<Record<string, () => Promise<Method>>> = {
  info: async () => async () => ({
    pid: process.pid,
    name: start.name,
    parent: start.parent,
    node: process.version,
    corespun: start.version,
    uptimeMs: Math.round(process.uptime() * 1000),
    methods: Object.keys(METHODS),
    actions: start.actions,
  }),
  profile: async () => (await import('./profile.ts')).profile,
  stacks: async () => (await import('./stacks.ts')).stacks,
  snapshot: async () => {
    const { snapshots } = await import('./snapshot.ts')
    return (snapshot ??= snapshots(start, () => actions.look()))
  },
  control: async () => actions.run,
}

const CONNECTIONS_MAX = 16
/** How long a client may take for its request, and for reading its answer. */
const REQUEST_MS = 10_000

function accept(socket: Socket): void {
  const stop = new AbortController()
  let method: string | undefined
  socket.on('error', () => {}) // it closes as well
  socket.on('close', () => stop.abort())
  // Of a client that has disconnected nothing else is noticed until something is written.
  socket.on('end', () => {
    stop.abort()
    if (method === undefined) socket.end()
  })
  socket.setTimeout(REQUEST_MS, () => socket.destroy())
  const send = (line: object): void => {
    if (socket.writable) socket.write(`${JSON.stringify(line)}\n`)
  }
  const answer = (line: object): void => {
    socket.setTimeout(REQUEST_MS)
    send(line)
    socket.end()
  }
  const refuse = (error: unknown): void => answer({ error: sentError(error, method ?? 'the request') })
  const received = (line: string): void => {
    if (method !== undefined) return void (isStop(line) && stop.abort())
    method = 'the request'
    run(line).then((result) => answer({ result }), refuse)
  }
  const run = async (line: string): Promise<unknown> => {
    const { method: name, params } = readRequest(line)
    const load = Object.hasOwn(METHODS, name) ? METHODS[name] : undefined
    if (load === undefined)
      throw new ObserveError('OBSERVE_METHOD', { method: name.slice(0, 100), known: Object.keys(METHODS) })
    method = name
    socket.setTimeout(0)
    const result = await (await load())({ params, stop: stop.signal, event: (event) => send({ event }) })
    const { length } = JSON.stringify(result) ?? ''
    if (length > ANSWER_CHARS_MAX)
      throw new ObserveError('OBSERVE_ANSWER_LARGE', { bytes: length, bytesMax: ANSWER_CHARS_MAX })
    return result
  }
  readLines(socket, REQUEST_BYTES_MAX, received, () =>
    refuse(new ObserveError('OBSERVE_REQUEST', { problem: `it is longer than ${REQUEST_BYTES_MAX} bytes` })),
  )
}

function refuseConnection(socket: Socket): void {
  const error = new ObserveError('OBSERVE_BUSY', { limit: `${CONNECTIONS_MAX} connections` })
  socket.on('error', () => {})
  socket.end(`${JSON.stringify({ error: sentError(error, 'the request') })}\n`)
}

function listen(server: Server, mayRetry: boolean): void {
  const report = async (error: NodeJS.ErrnoException): Promise<void> => {
    // The socket may be left by a process that had this pid.
    const isUsed = error.code !== 'EADDRINUSE' || !mayRetry || (await isAnswered(start.path))
    if (isUsed) port.postMessage({ failed: error.message } satisfies ObserverNote)
    else listen(server, false)
  }
  const failed = (error: NodeJS.ErrnoException): void => void report(error)
  server.once('error', failed)
  server.listen(start.path, () => {
    server.off('error', failed)
    protectSocket(start.path)
    port.postMessage({ listening: true } satisfies ObserverNote)
    // Removes what processes have left that were killed.
    void controlSockets().catch(() => {})
  })
}

let connections = 0
const server = createServer({ allowHalfOpen: true }, (socket) => {
  if (connections >= CONNECTIONS_MAX) return refuseConnection(socket)
  connections++
  socket.on('close', () => connections--)
  accept(socket)
})
listen(server, true)
