/**
 * The server of the A/B comparison and its client, a process that this one starts: the CPU of the host is
 * then that of the server alone.
 *
 * The client (`node http.js <port>`) keeps connections open, sends what an order contains and requires that
 * every response is as long as the first one, whose status and body it compares.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import net from 'node:net'
import { ASKED } from '../contenders/http/responses.ts'
import { BenchError } from '../harness/errors.ts'

const CONNECTIONS = 16
const SECTIONS = ['hello', 'user', 'echo', 'pipelined'] as const
/** Requests in one write of the pipelined section. */
const PIPELINED = 16

interface Load {
  readonly section: (typeof SECTIONS)[number]
  readonly requests: number
}

/** Rows of section http: CPU is that of the server; the wall's clock also waits for the client. */
export async function httpRows() {
  const [{ serve }, { routes }] = await Promise.all([
    import('corespun/http'),
    import('../contenders/http/app.ts'),
  ])
  const server = await serve({ host: '127.0.0.1', port: 0, routes })
  const client = fork(new URL(import.meta.url), [String((server as { port: number }).port)])
  const run = async (load: Load): Promise<void> => {
    client.send(load)
    const [failed] = (await once(client, 'message')) as [string]
    if (failed !== '')
      throw new BenchError('WRONG_ANSWER', {
        contender: 'corespun',
        work: load.section,
        got: failed,
        expected: 'the known one',
      })
  }
  return Object.fromEntries(
    SECTIONS.map((section) => [
      `${section}, ${CONNECTIONS} connections, a request`,
      () => ({
        batch: section === 'pipelined' ? 1600 : 480,
        run: (requests: number) => run({ section, requests }),
      }),
    ]),
  )
}

function requestOf(section: Load['section']): string {
  const { path, body } = ASKED[section]
  const head = `${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1\r\nhost: ab.test\r\n`
  if (body === undefined) return `${head}\r\n`.repeat(section === 'pipelined' ? PIPELINED : 1)
  return `${head}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

/** Have one connection do its share of a load. */
async function share(socket: net.Socket, { section, requests }: Load, bytes: number): Promise<void> {
  const [text, atOnce] = [requestOf(section), section === 'pipelined' ? PIPELINED : 1]
  let left = Math.ceil(requests / CONNECTIONS / atOnce)
  let due = 0
  await new Promise<void>((resolve, reject) => {
    const next = (): void => {
      if (left === 0) return done()
      left -= 1
      due = bytes * atOnce
      socket.write(text)
    }
    const onData = (chunk: Buffer): void => {
      due -= chunk.length
      if (due === 0) next()
      else if (due < 0) done(new Error(`${-due} bytes too many`))
    }
    const onClose = (): void => done(new Error('the connection has closed'))
    const done = (error?: Error): void => {
      socket.off('data', onData).off('close', onClose)
      if (error === undefined) resolve()
      else reject(error)
    }
    socket.on('data', onData).on('close', onClose)
    next()
  })
}

/** Bytes of one response whose status and body are right. */
async function bytesOf(port: number, section: Load['section']): Promise<number> {
  const { expected } = ASKED[section]
  const socket = net.connect(port, '127.0.0.1').setEncoding('latin1')
  socket.write(requestOf(section === 'pipelined' ? 'hello' : section))
  let text = ''
  for await (const chunk of socket) {
    text += chunk as string
    if (text.endsWith(`\r\n\r\n${expected}`)) break
  }
  if (text.startsWith('HTTP/1.1 200 ') && text.endsWith(`\r\n\r\n${expected}`)) return text.length
  throw new Error(text)
}

async function client(port: number): Promise<void> {
  const known: Record<string, number> = {}
  const sockets = Array.from({ length: CONNECTIONS }, () => net.connect(port, '127.0.0.1').setNoDelay())
  process.on('disconnect', () => process.exit(0))
  const respond = async (load: Load): Promise<void> => {
    try {
      const bytes = known[load.section] ?? (known[load.section] = await bytesOf(port, load.section))
      await Promise.all(sockets.map((socket) => share(socket, load, bytes)))
      process.send!('')
    } catch (error) {
      process.send!(String(error))
    }
  }
  // Never rejects: an error is part of what it reports.
  process.on('message', (load: Load) => void respond(load))
}

if (process.argv[1]?.endsWith('ab/http.js') ?? false) await client(Number(process.argv[2]))
