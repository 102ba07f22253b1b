/**
 * What the measured package does not export to its users: frames in memory of the caller's.
 *
 * The tables compare them with codecs that write into their own memory too.
 */
interface Internal {
  readonly FrameWriter: new (target: Uint8Array) => { write(value: unknown, at: number): number }
  readonly readFrame: (source: Uint8Array, start: number, end: number) => unknown
}

const { href } = new URL('./internal.js', import.meta.resolve('corespun/transport'))

export const { FrameWriter, readFrame } = (await import(href)) as Internal
