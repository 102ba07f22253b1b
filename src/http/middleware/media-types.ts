/**
 * Content types by the ending of a name: what a web page is made of, and what people put beside it.
 *
 * Anything else is bytes, which a browser saves instead of guessing.
 */

const UTF_8 = ';charset=UTF-8'

const TYPES: ReadonlyMap<string, string> = new Map([
  ['html', `text/html${UTF_8}`],
  ['htm', `text/html${UTF_8}`],
  ['css', `text/css${UTF_8}`],
  ['js', `text/javascript${UTF_8}`],
  ['mjs', `text/javascript${UTF_8}`],
  ['json', 'application/json'],
  ['map', 'application/json'],
  ['ndjson', 'application/x-ndjson'],
  ['webmanifest', 'application/manifest+json'],
  ['txt', `text/plain${UTF_8}`],
  ['md', `text/markdown${UTF_8}`],
  ['csv', `text/csv${UTF_8}`],
  ['xml', 'application/xml'],
  ['svg', 'image/svg+xml'],
  ['png', 'image/png'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['gif', 'image/gif'],
  ['webp', 'image/webp'],
  ['avif', 'image/avif'],
  ['ico', 'image/x-icon'],
  ['woff', 'font/woff'],
  ['woff2', 'font/woff2'],
  ['ttf', 'font/ttf'],
  ['otf', 'font/otf'],
  ['wasm', 'application/wasm'],
  ['pdf', 'application/pdf'],
  ['mp3', 'audio/mpeg'],
  ['wav', 'audio/wav'],
  ['ogg', 'audio/ogg'],
  ['mp4', 'video/mp4'],
  ['webm', 'video/webm'],
  ['gz', 'application/gzip'],
  ['zip', 'application/zip'],
])

/** The content type for a path. */
export function typeOf(path: string): string {
  const ending = /\.([^./\\]+)$/.exec(path)?.[1]?.toLowerCase() ?? ''
  return TYPES.get(ending) ?? 'application/octet-stream'
}
