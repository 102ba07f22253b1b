/**
 * A process of table `fleet`: one side of one contender, or a process that works by itself.
 *
 * The calling side is ordered to work; every answer is compared with the known one.
 */
import { connect as open } from '@nats-io/transport-node'
import { checkAnswer } from '../../harness/errors.ts'
import { serveOrders } from '../../harness/orders.ts'
import { CONTENDERS, type Contender, type Setting, TEXT, type Work } from './contenders.ts'
import { PRIMES, primes, type Size } from './work.ts'

/** What a process is ordered to do. */
export type FleetOrder =
  | { readonly what: 'serve' | 'open'; readonly setting: Setting }
  | { readonly what: 'work'; readonly seconds: number; readonly inFlight: number; readonly size?: Size }
  | { readonly what: 'alone'; readonly seconds: number; readonly size: Size }
  | { readonly what: 'bytes'; readonly url: string }

/** What came of it. */
export interface Worked {
  readonly p50Us: number
  readonly perSecond: number
}

/** What is called before the clock runs. */
const WARM = 200

const [section, name] = process.argv.slice(2)
const contender = (CONTENDERS as Record<string, Record<string, Contender>>)[section]?.[name]
let setting: Setting | undefined
let work: Work | undefined
let count = 0
let size: Size = '0.7 ms'

serveOrders((order: FleetOrder) => {
  switch (order.what) {
    case 'serve':
      return contender.serve(order.setting)
    case 'open':
      return begin(order.setting)
    case 'work':
      size = order.size ?? size
      return worked(order.seconds, order.inFlight)
    case 'alone':
      size = order.size
      return alone(order.seconds)
    case 'bytes':
      return bytesOfCall(order.url)
  }
})

async function begin(at: Setting): Promise<void> {
  setting = at
  work = await contender.call(at)
  for (let n = 0; n < (section === 'hosts' ? 4 : WARM); n += 1) await one()
}

async function one(): Promise<void> {
  const n = count++
  checkAnswer({
    contender: name,
    work: `${section} ${n}`,
    got: await work!(n, size),
    expected: expectedOf(n),
  })
}

function expectedOf(n: number): unknown {
  if (section === 'job' || section === 'durable') return n * 2
  if (section === 'hosts') return PRIMES[size][1]
  return name === 'corespun' ? TEXT : setting!.bytes[1]
}

async function worked(seconds: number, inFlight: number): Promise<Worked> {
  const begunMs = performance.now()
  const endMs = begunMs + seconds * 1000
  const us: number[] = []
  const caller = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const atMs = performance.now()
      await one()
      us.push((performance.now() - atMs) * 1000)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, caller))
  const perSecond = (us.length / (performance.now() - begunMs)) * 1000
  us.sort((a, b) => a - b)
  return { p50Us: us[us.length >> 1], perSecond }
}

/** The same work without anything between. */
function alone(seconds: number): Worked {
  const begunMs = performance.now()
  let done = 0
  while (performance.now() < begunMs + seconds * 1000) {
    const [below, expected] = PRIMES[size]
    checkAnswer({ contender: name, work: 'primes', got: primes(below), expected })
    done += 1
  }
  const spentMs = performance.now() - begunMs
  return { p50Us: (spentMs / done) * 1000, perSecond: (done / spentMs) * 1000 }
}

/** How long a call's message and its reply are on the wire. */
async function bytesOfCall(url: string): Promise<Setting['bytes']> {
  const connection = await open({ servers: url })
  const bytes: [number, number] = [0, 0]
  const seen = (at: 0 | 1) => ({
    callback: (_error: unknown, { data }: { data: Uint8Array }) => void (bytes[at] = data.length),
  })
  connection.subscribe('corespun.host.>', seen(0))
  connection.subscribe('_INBOX.>', seen(1))
  await connection.flush()
  await one()
  await connection.flush()
  await connection.close()
  return bytes
}
