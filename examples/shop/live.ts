/**
 * The WebSocket of a page: questions about a product, in a room of those who look at it, and news of the
 * products, for everybody. Rooms span all workers.
 */
import { publish, type HttpRequest, type ServerSocket } from 'corespun/http'
import { z } from 'zod'
import { sessionOf } from './basket.ts'
import { json } from './json.ts'
import { Sku } from './product.ts'
import { products, questions } from './stores.ts'

interface Visitor {
  readonly name: string
  /** The product that the page shows. */
  sku?: string
  /** When the last question came: one a second is taken. */
  askedMs: number
}

const EVERYBODY = 'everybody'
const QUESTIONS_MAX = 50
const MESSAGE_CHARS_MAX = 2000
const Message = json(
  MESSAGE_CHARS_MAX,
  z.union([z.object({ enter: Sku }), z.object({ ask: z.string().trim().min(1).max(500) })]),
)

export const live = {
  '/live': {
    websocket: {
      messageBytesMax: 4 * MESSAGE_CHARS_MAX,
      upgrade: async (request: HttpRequest) => {
        const id = (await sessionOf(request).get())?.id ?? ''
        return { data: { name: `guest ${id.slice(0, 4)}`.trim(), askedMs: 0 } satisfies Visitor }
      },
      open: (socket: ServerSocket<Visitor>) => socket.subscribe(EVERYBODY),
      message: (socket: ServerSocket<Visitor>, text: string | Uint8Array) => {
        const { data } = Message.safeParse(String(text))
        if (data === undefined) send(socket, { refused: 'a question has 1 to 500 characters' })
        else if ('enter' in data) enter(socket, data.enter)
        else ask(socket, data.ask)
      },
    },
  },
}

/** For everybody who has a page open. */
export const announce = (request: HttpRequest, news: object): void =>
  publish(request, EVERYBODY, JSON.stringify(news))

function enter(socket: ServerSocket<Visitor>, sku: string): void {
  if (!products.has(sku)) return send(socket, { refused: `there is no product ${sku}` })
  if (socket.data.sku !== undefined) socket.unsubscribe(`product ${socket.data.sku}`)
  socket.data.sku = sku
  socket.subscribe(`product ${sku}`)
  send(socket, { questions: questions.get(sku) ?? [] })
}

function ask(socket: ServerSocket<Visitor>, text: string): void {
  const { sku, name, askedMs } = socket.data
  if (sku === undefined) return send(socket, { refused: 'enter a product first' })
  if (Date.now() - askedMs < 1000) return send(socket, { refused: 'one question a second' })
  socket.data.askedMs = Date.now()
  const question = { name, text, at: new Date().toISOString() }
  questions.update(sku, (before = []) => [...before, question].slice(-QUESTIONS_MAX))
  socket.publish(`product ${sku}`, JSON.stringify({ question }))
  send(socket, { question })
}

function send(socket: ServerSocket<Visitor>, message: object): void {
  socket.send(JSON.stringify(message))
}
