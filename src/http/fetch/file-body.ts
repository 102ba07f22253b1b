/**
 * A part of a file as a body: the core that has the file open sends it without reading it.
 *
 * Whatever else reads the body (`inject`, a middleware, node:http) opens the file itself, and fails if it is
 * not the same any more.
 */
import type { FileHandle } from 'node:fs/promises'
import type { FilePart } from '../message/core-interface.ts'
import { LazyBody } from './lazy-body.ts'
import type { ReadResult } from '../message/standard.ts'

const PIECE_BYTES = 64 * 1024

export class FileBody extends LazyBody {
  readonly part: FilePart
  readonly #open: () => Promise<FileHandle>
  #handle: FileHandle | undefined
  #readBytes = 0
  #isClosed = false

  /**
   * @param open Opens the file that `part` is of.
   * @param handle The same, if it is open already and the body is read at once. Both are closed here.
   */
  constructor(part: FilePart, open: () => Promise<FileHandle>, handle?: FileHandle) {
    super()
    this.part = part
    this.#open = open
    this.#handle = handle
  }

  override async read(): Promise<ReadResult> {
    const { start, bytes } = this.part
    const left = bytes - this.#readBytes
    if (left === 0) {
      await this.#close()
      return { done: true }
    }
    try {
      const handle = this.#handle ?? (await this.#opened())
      const piece = new Uint8Array(Math.min(PIECE_BYTES, left))
      const { bytesRead } = await handle.read(piece, 0, piece.length, start + this.#readBytes)
      if (bytesRead === 0) throw new Error('the file became shorter while it was sent')
      this.#readBytes += bytesRead
      if (this.#readBytes === bytes) await this.#close()
      return { done: false, value: bytesRead === piece.length ? piece : piece.subarray(0, bytesRead) }
    } catch (error) {
      await this.#close()
      throw error
    }
  }

  override cancel(): Promise<void> {
    return this.#close()
  }

  override again(): FileBody {
    return new FileBody(this.part, this.#open)
  }

  /** @throws {Error} If the body was cancelled meanwhile. */
  async #opened(): Promise<FileHandle> {
    const handle = await this.#open()
    if (!this.#isClosed) return (this.#handle = handle)
    await handle.close()
    throw new Error('the body was cancelled')
  }

  async #close(): Promise<void> {
    this.#isClosed = true
    const handle = this.#handle
    this.#handle = undefined
    await handle?.close()
  }
}
