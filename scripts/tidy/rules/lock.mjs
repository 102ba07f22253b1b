/**
 * Lock files name no registry: the one of whoever installs is used, which may be a mirror that others cannot
 * reach.
 */

export function locks(tree) {
  const files = tree.sources.filter(({ path }) => /(^|\/)package-lock\.json$/.test(path))
  return files.flatMap(({ path, text }) => {
    const hosted = Object.entries(JSON.parse(text).packages).filter(([, { resolved = '' }]) =>
      /^https?:/.test(resolved),
    )
    const messageOf = (name) => `contains where ${name} was downloaded from: see .npmrc`
    return hosted.map(([name]) => ({ path, line: 1, message: messageOf(name) }))
  })
}
