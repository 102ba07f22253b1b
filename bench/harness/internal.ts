/**
 * What the measured package does not export to its users: frames in memory of the caller's.
 *
 * The tables compare them with codecs that write into their own memory too.
 */
import { PACKAGE_FOLDER } from './place.ts'

interface Internal {
  readonly FrameWriter: new (target: Uint8Array) => { write(value: unknown, at: number): number }
  readonly readFrame: (source: Uint8Array, start: number, end: number) => unknown
}

export const { FrameWriter, readFrame } = (await import(
  `${PACKAGE_FOLDER}/dist/transport/internal.js`
)) as Internal
