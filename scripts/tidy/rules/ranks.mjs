/**
 * Folders of a module have ranks, as modules have: a file imports from its own folder and from lower ones, so
 * a folder can be read without those above it.
 *
 * Types count, and so does `import()`, which hides a circle from the linter. Files in a module's own folder
 * have the lowest rank unless the table names them; its doors (index.ts, internal.ts) have the highest. Tests
 * import what they need.
 */
import { posix } from 'node:path'

/** By module: folders and files from the lowest rank to the highest; a comma joins those of one rank. */
const RANKS = {
  arrow: 'build run remote api',
  fiber: 'scheduler core combine share remote',
  fleet:
    'engine certainly.ts,changes.ts,presence.ts,wire.ts worker zone state jobs limits rooms ' +
    'overview.ts,server-config.ts connect.ts create.ts host',
  http: 'message tls fetch listener websocket app core coding middleware contract server.ts cluster serve.ts',
  observe: 'figures thread,dashboard client.ts,observe.ts child.ts',
  transport: 'functions classes write read path.ts,refused.ts,frame.ts codec.ts,setup.ts rehearsal.ts',
  zone: 'ground context call parallel stream owner worker api',
}

/** Imports that climb today. The list only shrinks. */
const CLIMBS = new Set([
  'src/fiber/core/fork.ts -> src/fiber/remote/on.ts',
  'src/fiber/scheduler/sleep.ts -> src/fiber/core/op.ts',
  'src/fiber/scheduler/yielding.ts -> src/fiber/core/op.ts',
  'src/http/message/http-request.ts -> src/http/app/router.ts',
  'src/zone/call/streamed.ts -> src/zone/stream/carried/arguments.ts',
  'src/zone/call/streamed.ts -> src/zone/stream/carried/opened.ts',
  'src/zone/owner/hook-times.ts -> src/zone/worker/run-hooks.ts',
  'src/zone/owner/owner.ts -> src/zone/api/node-zone.ts',
  'src/zone/owner/owner.ts -> src/zone/worker/main-thread.ts',
  'src/zone/worker/worker.ts -> src/zone/api/zones.ts',
])

const DOORS = new Set(['index.ts', 'internal.ts'])
const IMPORT = /(?:\bfrom|\bimport\s*\(?)\s*['"](\.[^'"]+)['"]/g
const COMMENT = /\/\*[^]*?\*\//g

export function ranks(tree) {
  const unused = new Set(CLIMBS)
  const found = tree.sources.flatMap(({ path, text }) => {
    const from = placeOf(path)
    if (from === undefined) return []
    const lines = text.replace(COMMENT, (comment) => comment.replace(/[^\n]/g, ' ')).split('\n')
    return lines.flatMap((line, index) =>
      [...line.matchAll(IMPORT)].flatMap(([, target]) => {
        const other = posix.join(posix.dirname(path), target)
        const to = placeOf(other)
        if (to === undefined || to.module !== from.module || to.rank <= from.rank) return []
        if (unused.delete(`${path} -> ${other}`) || CLIMBS.has(`${path} -> ${other}`)) return []
        const message = `imports ${other}, whose folder has a higher rank (scripts/tidy/rules/ranks.mjs)`
        return [{ path, line: index + 1, message }]
      }),
    )
  })
  const removed = [...unused].flatMap((climb) => {
    const [path] = climb.split(' ')
    const message = `no longer imports what CLIMBS has: remove "${climb}" there`
    return tree.byPath.has(path) ? [{ path, line: 1, message }] : []
  })
  return [...found, ...removed]
}

/** The module of a source file, and its rank there; `undefined` for tests and what has no table. */
function placeOf(path) {
  const [, module, rest] = /^src\/([^/]+)\/(.+)$/.exec(path) ?? []
  const table = RANKS[module]?.split(' ')
  if (table === undefined || /\.test\.(support\.)?ts$/.test(rest)) return undefined
  if (DOORS.has(rest)) return { module, rank: table.length }
  const [room] = rest.split('/', 1)
  return { module, rank: table.findIndex((names) => names.split(',').includes(room)) }
}
