/**
 * The SDK of a thread of the tests, and calls in the form of a tree: each task makes those below it.
 * The tree is the oracle: what a test expects of spans and deadlines is read from it.
 */
import { SpanStatusCode, context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { liftAsync } from '../arrow/index.ts'
import { fork, on, sleep } from '../fiber/index.ts'
import { currentTask, zone } from '../zone/index.ts'
import { traceTasks } from './index.ts'

export { traceRuns } from './index.ts'

/** What a test compares of a span. */
export interface Seen {
  readonly name: string
  readonly id: string
  readonly traceId: string
  readonly parent: string | undefined
  readonly kind: number
  readonly attributes: Readonly<Record<string, unknown>>
  readonly isError: boolean
  readonly events: readonly string[]
  /** Spans that have caused it. */
  readonly links: readonly string[]
}

/** How a task makes a call. */
export const WAYS = ['run', 'fiber', 'arrow', 'stream', 'map', 'main', 'node', 'process'] as const

/** A task, and the calls that it makes at once. */
export interface Tree {
  readonly zone: number
  readonly way: (typeof WAYS)[number]
  readonly below: readonly Tree[]
}

/** A task that has run: the span that was active in it. */
export interface Ran {
  readonly id: string | undefined
  readonly traceId: string | undefined
  /** What it had left of its deadline when it began. */
  readonly leftMs: number | undefined
  readonly below: readonly Ran[]
}

let exporter: InMemorySpanExporter | undefined

/** Start the SDK of this thread, once. */
export function start(): void {
  if (exporter !== undefined) return
  exporter = new InMemorySpanExporter()
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
  )
  traceTasks()
}

/** The ended spans of this thread so far; they are forgotten. */
export function takeSpans(): Seen[] {
  const spans = exporter?.getFinishedSpans().map(seen) ?? []
  exporter?.reset()
  return spans
}

function seen(span: ReadableSpan): Seen {
  const { spanId, traceId } = span.spanContext()
  return {
    name: span.name,
    id: spanId,
    traceId,
    parent: span.parentSpanContext?.spanId,
    kind: span.kind,
    attributes: { ...span.attributes },
    isError: span.status.code === SpanStatusCode.ERROR,
    events: span.events.map(({ name }) => name),
    links: span.links.map((link) => link.context.spanId),
  }
}

/** The names of the zones that {@link walk} calls; `traced-process` has workers that are processes. */
export const ZONES = ['traced-0', 'traced-1'] as const

/** Make the calls of a tree, all at once; what they were. */
export async function walk({ below }: Pick<Tree, 'below'>): Promise<Ran> {
  const span = trace.getActiveSpan()?.spanContext()
  const leftMs = currentTask()?.remainingMs
  const ran = await Promise.all(below.map(called))
  return { id: span?.spanId, traceId: span?.traceId, leftMs, below: ran }
}

async function called(tree: Tree): Promise<Ran> {
  const target = zone.get(ZONES[tree.zone])
  const other = zone.get(ZONES[1 - tree.zone])
  const task = async (inner: Tree): Promise<Ran> => {
    const { walk } = await import('./spans.test.support.ts')
    return await walk(inner)
  }
  switch (tree.way) {
    case 'fiber':
      return await fork(function* () {
        yield* sleep(0)
        return yield* on(target, task, tree)
      }).join()
    case 'arrow':
      // In its own zone a stage is not a call.
      return await liftAsync(task)
        .on(zone.current.id === target.id ? other : target)
        .run(tree)
    case 'stream': {
      const rows = target.stream(
        async function* (input: AsyncIterable<Tree>) {
          const { walk } = await import('./spans.test.support.ts')
          for await (const one of input) yield await walk(one)
        },
        [tree],
      )
      for await (const row of rows) return row
      throw new Error('the stream has one row')
    }
    case 'map':
      return (await target.map([tree], task))[0]
    case 'main':
      return await zone.main.run(task, tree)
    case 'node':
      return await zone.node.run(task, tree)
    case 'process':
      return await zone.get('traced-process').run(task, tree)
    default:
      return await target.run(task, tree)
  }
}
