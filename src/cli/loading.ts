/**
 * The notice of a command whose module takes long to load. Loading has no limit, as in Node: a module may
 * wait for a network. One that never ends would otherwise look like a command that hangs.
 */
const NOTICE_MS = 10_000

/** What a module waits for that has not been evaluated. */
export const OWN_CODE = 'its code, or an await at its top level, has not ended'

/**
 * What `loading` settles with; after ten seconds `notice` is called with a line about it.
 * @param waitsFor What has not ended by then.
 */
export async function loadedWithNotice<Value>(
  module: string,
  loading: Promise<Value>,
  notice: (line: string) => void,
  waitsFor = (): string => OWN_CODE,
): Promise<Value> {
  const print = (): void => notice(`still loading ${module}: ${waitsFor()}; press Ctrl-C to stop`)
  const timer = setTimeout(print, NOTICE_MS)
  try {
    return await loading
  } finally {
    clearTimeout(timer)
  }
}
