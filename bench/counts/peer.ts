/**
 * The client of a counted server: a thread whose own system calls are left out.
 *
 * What the main thread does between two operations is the server's alone: nothing is posted to it then. An
 * answer that is not the known one is never complete, and ends the run by its time.
 */
import { once } from 'node:events'
import net from 'node:net'
import { isMainThread, type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { eachOperation, mark } from './marks.ts'

/** What it is started with. */
export interface PeerData {
  readonly port: number
  readonly subject: string
}
/** How often it exchanges something, and whether each time begins an operation of the trace. */
export interface PeerOrder {
  readonly count: number
  readonly isCounted: boolean
}

const REQUEST = 'GET / HTTP/1.1\r\nhost: abcdef\r\n\r\n'
const UPGRADE = [
  'GET / HTTP/1.1',
  'host: abcdef',
  'connection: upgrade',
  'upgrade: websocket',
  'sec-websocket-version: 13',
  `sec-websocket-key: ${'A'.repeat(22)}==`,
  '\r\n',
].join('\r\n')
/** "hello", masked by zeros. */
const FRAME = Buffer.from([0x81, 0x85, 0, 0, 0, 0, 0x68, 0x65, 0x6c, 0x6c, 0x6f])

if (!isMainThread && parentPort !== null) await run(workerData as PeerData, parentPort)

async function run({ port, subject }: PeerData, main: MessagePort): Promise<void> {
  mark('off')
  const socket = net.connect(port, '127.0.0.1')
  const isFrame = subject === 'frame'
  const exchange = async (bytes: string | Buffer, ending: string): Promise<void> => {
    socket.write(bytes)
    for (let got = ''; !got.endsWith(ending);) got += String((await once(socket, 'data'))[0])
  }
  if (isFrame) await exchange(UPGRADE, '\r\n\r\n')
  const each = (): Promise<void> => exchange(isFrame ? FRAME : REQUEST, 'hello')
  main.on('message', (order: PeerOrder) => {
    void eachOperation(order, each).then(() => main.postMessage('done'))
  })
}
