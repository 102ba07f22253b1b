/**
 * The first values of a thread, written and read before those of the program.
 *
 * The engine compiles functions at their first calls, for a millisecond or two all together. The door of the
 * transport does that when it is loaded. A zone does it in both threads while the workers start: no import of
 * a zone and no task waits for it.
 */
import { decode, encode } from './codec.ts'
import { FrameWriter, readFrame } from './frame.ts'

/** Times after which the engine has what it needs to run a function without looking up each access anew. */
const REHEARSALS = 10
const SAMPLE = {
  list: ['text', { number: 1.5, more: 300, most: 1e6, no: null, yes: true, empty: [] }],
  long: 'text of more than 63 characters, which has a tag with two bytes of length',
}

let isRehearsed = false

/** Write and read a few values, once in this thread. */
export function rehearse(): void {
  if (isRehearsed) return
  isRehearsed = true
  const bytes = new Uint8Array(512)
  const writer = new FrameWriter(bytes)
  for (let count = 0; count < REHEARSALS; count++) {
    decode(encode(SAMPLE))
    readFrame(bytes, 0, writer.write([SAMPLE], 0))
  }
}
