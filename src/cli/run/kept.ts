/**
 * The journal of `corespun run --journal`: what became of each item, by its path and content, or by its text.
 *
 * It is a store of the engine in a file. A result is recorded before its line is written, so what was printed
 * does not run again; a line of an earlier run is written again, so each run writes one line for every item.
 * An item whose process dies between its end and the record runs again. A value is a line of JSON about the
 * item and then the JSON of its result, or its failure; docs/guide/recipes.md describes both.
 */
import { createReadStream, readFileSync, statSync } from 'node:fs'
import { dirname, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { KeyValue } from '../../fleet/internal.ts'
import type { ItemKind, RunOptions } from '../arguments.ts'
import type { Call, Lines, ReadyItem } from './item-runner.ts'
import { type Item, KeptLine } from './lines.ts'
import { isFailure, jsonIn, type RecordStyle, unmarked, valueLine } from './records.ts'

/** Items that are looked up at once: the lines of so many are held beside those that wait to be written. */
const LOOKED_UP_MAX = 128
/** Items without a line that follow each other as one batch: a group of them is recorded by one commit. */
const BATCH_MAX = 1024
/** Of a line that failed, what `--failed` shows of it. */
const ITEM_CHARS_MAX = 1000
const PAGE_ITEMS = 1000

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Which item it is, and with which content. */
interface Identity {
  readonly key: string
  readonly content: string
}

/** What a journal has about an item before its result. */
interface About {
  readonly state: 'done' | 'failed'
  readonly content: string
  /** A hash of the module whose function ran; '' where it is not a file. */
  readonly program: string
  /** The run that has recorded it. */
  readonly run: string
  /** Of failures: the path, or the beginning of the line. */
  readonly item?: string
}

/** How items are identified. */
export interface Identifying {
  readonly items: ItemKind
  /** Whether the content of a file is its hash, not its size and the time of its last change. */
  readonly hashes: boolean
}

/** How items are identified and their lines are read. */
export interface Keeping extends Identifying {
  readonly style: RecordStyle
  readonly program: string
}

export class KeptResults {
  readonly #values: KeyValue
  readonly #keeping: Keeping
  readonly #close: () => Promise<void>
  readonly #run: string = crypto.randomUUID()
  /** Of items that were read and have not ended, by number. */
  readonly #identities = new Map<number, Identity>()
  /** Items that an earlier run has done. */
  keptCount = 0
  /** Those of them that another version of the module has done. */
  earlierCount = 0

  constructor(values: KeyValue, keeping: Keeping, close: () => Promise<void> = async () => {}) {
    this.#values = values
    this.#keeping = keeping
    this.#close = close
  }

  /** The items, the first of which is number 1; those that are done become their lines. */
  async *lookedUp(batches: AsyncIterable<readonly Item[]>): AsyncGenerator<readonly ReadyItem[]> {
    let number = 1
    for await (const batch of batches) {
      let ready: ReadyItem[] = []
      for (let at = 0; at < batch.length; at += LOOKED_UP_MAX) {
        const items = batch.slice(at, at + LOOKED_UP_MAX)
        const first = number
        number += items.length
        const found = await Promise.all(items.map((item, index) => this.#lookUp(item, first + index)))
        ready.push(...found)
        const isWhole = at + LOOKED_UP_MAX >= batch.length || ready.length >= BATCH_MAX
        if (!isWhole && !found.some((item) => item instanceof KeptLine)) continue
        yield ready
        ready = []
      }
    }
  }

  async #lookUp(item: Item, number: number): Promise<ReadyItem> {
    const identity = typeof item === 'string' ? await identityOf(item, this.#keeping) : undefined
    if (identity === undefined) return item
    const found = read((await this.#values.get(identity.key))?.bytes)
    // Equal lines all run, unless an earlier run has done one of them.
    const isDone = found?.state === 'done' && found.run !== this.#run
    if (!isDone || found.content !== identity.content) {
      this.#identities.set(number, identity)
      return item
    }
    this.keptCount++
    if (found.program !== this.#keeping.program) this.earlierCount++
    return new KeptLine(valueLine(found.json, number, this.#keeping.style))
  }

  /**
   * `call`, whose lines are recorded before it resolves.
   * @param failed Called when the journal cannot be written; the call does not settle then.
   */
  recording(call: Call, failed: (error: unknown) => void): Call {
    return async (texts, first) => {
      const lines = await call(texts, first)
      try {
        return await this.#recorded(lines, texts, first, failed)
      } catch (error) {
        failed(error)
        return new Promise<never>(() => {})
      }
    }
  }

  async #recorded(
    lines: Lines,
    texts: readonly string[],
    first: number,
    failed: (error: unknown) => void,
  ): Promise<Lines> {
    const { text, lineCount, itemCount, running } = lines
    const all = lineCount === 0 ? [] : text.split('\n')
    // The line of an item that still runs is a call of its own.
    const rest = running && this.recording(() => running, failed)(texts.slice(itemCount), first + itemCount)
    await Promise.all(all.map((line, index) => this.#record(line, texts[index], first + index)))
    return rest === undefined ? lines : { ...lines, running: rest }
  }

  async #record(line: string, item: string, number: number): Promise<void> {
    const identity = this.#identities.get(number)
    if (identity === undefined) return
    this.#identities.delete(number)
    const { program, style } = this.#keeping
    const { key, content } = identity
    const common = { content, program, run: this.#run }
    const about: About = isFailure(line)
      ? { state: 'failed', ...common, item: item.slice(0, ITEM_CHARS_MAX) }
      : { state: 'done', ...common }
    const json = isFailure(line) ? unmarked(line) : jsonIn(line, number, style)
    await this.#values.put(key, encoder.encode(`${JSON.stringify(about)}\n${json}`))
  }

  /** A line of JSON for each item that failed when it ran last: its path or text, and the error. */
  async *failures(): AsyncGenerator<string> {
    let after: string | undefined
    do {
      const { items, next } = await this.#values.page({ after, itemsMax: PAGE_ITEMS })
      for (const { key, bytes } of items) {
        const found = read(bytes)
        if (found?.state !== 'failed') continue
        const { error } = JSON.parse(found.json) as { readonly error: unknown }
        yield JSON.stringify({ [key.startsWith('path ') ? 'path' : 'line']: found.item, error })
      }
      after = next
    } while (after !== undefined)
  }

  close(): Promise<void> {
    return this.#close()
  }
}

/**
 * Open the journal of a run: a store of the file for each function and current directory.
 * @param url The module. @param folder The current directory.
 * @throws {FleetError} `FLEET_NODE`, and the codes of a file that cannot be used.
 */
export async function openKept(
  options: RunOptions & { readonly journal: string },
  { url, folder, style }: { readonly url: string; readonly folder: string; readonly style: RecordStyle },
): Promise<KeptResults> {
  const { sqliteEngine } = await import('../../fleet/internal.ts')
  /* c8 ignore start: the main run of the suite is on a Node without SQLite */
  const file = resolve(folder, options.journal)
  const engine = await sqliteEngine(file)
  const { items, exportName, journalHash: hashes } = options
  const path = url.startsWith('file:') ? fileURLToPath(url) : undefined
  const values = await engine.keyValue(storeName(file, { url, exportName, folder }), { ttlMs: 0 })
  const program = path === undefined ? '' : newHash().update(readFileSync(path)).digest('hex').slice(0, 16)
  return new KeptResults(values, { items, style, hashes, program }, () => engine.close())
  /* c8 ignore stop */
}

/** What a journal has of a function in a folder, relative to the journal: it may move with its folder. */
export function storeName(
  file: string,
  of: { readonly url: string; readonly exportName: string; readonly folder: string },
): string {
  const { url, exportName, folder } = of
  const near = (to: string): string => relative(dirname(file), to).replaceAll(sep, '/') || '.'
  const module = url.startsWith('file:') ? near(fileURLToPath(url)) : url
  return `run ${module}#${exportName} in ${near(folder)}`
}

function read(bytes: Uint8Array | undefined): (About & { readonly json: string }) | undefined {
  if (bytes === undefined) return undefined
  const end = bytes.indexOf(10)
  const about = JSON.parse(decoder.decode(bytes.subarray(0, end))) as About
  return { ...about, json: decoder.decode(bytes.subarray(end + 1)) }
}

/** `undefined` for a file that cannot be looked at: it runs, and is not recorded. */
export async function identityOf(item: string, how: Identifying): Promise<Identity | undefined> {
  const { items, hashes } = how
  // An item of NDJSON is another value than a line of the same text.
  if (items !== 'paths') return { key: `${items} ${newHash().update(item).digest('hex')}`, content: '' }
  const key = `path ${item}`
  try {
    if (hashes) return { key, content: await hashOf(item) }
    const { size, mtimeNs } = statSync(item, { bigint: true })
    return { key, content: `${size} ${mtimeNs}` }
  } catch {
    return undefined // The function meets the same error, and its failure is a line.
  }
}

const newHash = () => process.getBuiltinModule('node:crypto').createHash('sha256')

async function hashOf(path: string): Promise<string> {
  const hash = newHash()
  for await (const piece of createReadStream(path)) hash.update(piece as Buffer)
  return `sha256 ${hash.digest('hex')}`
}
