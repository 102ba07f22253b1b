/**
 * No pool at all: the function is called where it stands, behind one promise.
 *
 * What it costs is what the bench itself costs, so it stands in the tables as the harness's own share.
 */
import { asItIs, type Contender, type Pool } from './contender.ts'
import { WORK } from './work.ts'

async function open(): Promise<Pool> {
  return {
    nothing: async () => WORK.nothing(),
    call: async (name, input) => WORK[name](input as never),
    valueOf: asItIs,
    close: async () => {},
  }
}

export default {
  name: 'direct',
  settings: 'an async function in the calling thread: the bench itself',
  open,
} satisfies Contender
