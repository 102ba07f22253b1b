/**
 * The notice of a command whose module takes long to load. Loading has no limit, as in Node: a module may
 * wait for a network. One that never ends would otherwise look like a command that hangs.
 */
const NOTICE_MS = 10_000

/** What `loading` settles with; after ten seconds `notice` is called with a line about it. */
export async function loadedWithNotice<Value>(
  module: string,
  loading: Promise<Value>,
  notice: (line: string) => void,
): Promise<Value> {
  const timer = setTimeout(notice, NOTICE_MS, `still loading ${module}; press Ctrl-C to stop`)
  try {
    return await loading
  } finally {
    clearTimeout(timer)
  }
}
