/**
 * The first values of a program, written and read before its own.
 *
 * The engine compiles functions at their first call, for a millisecond all together: when the door of the
 * transport is loaded, and not in the first values of its users. Other modules do not load this: what zones
 * send first is written while their workers start.
 */
import { decode, encode } from './codec.ts'
import { FrameWriter } from './frame.ts'

/** Times after which the engine has what it needs to run a function without looking up each access anew. */
const REHEARSALS = 10
const SAMPLE = {
  list: ['text', { number: 1.5, more: 300, most: 1e6, no: null, yes: true, empty: [] }],
  long: 'text of more than 63 characters, which has a tag with two bytes of length',
}

const writer = new FrameWriter(new Uint8Array(256))
for (let count = 0; count < REHEARSALS; count++) {
  decode(encode(SAMPLE))
  writer.write([SAMPLE], 0)
}
