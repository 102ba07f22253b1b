/**
 * A page to read and try an API: Swagger UI, from the package `swagger-ui-dist`, an optional peer.
 *
 * Its two files are served from node_modules, so a browser asks no other host, and the policy of the page
 * allows none. Scripts are files: nothing of the document or the options is written into HTML but the title.
 */
import { dirname } from 'node:path'
import { optionsOf, text } from '../../base/index.ts'
import { wrong } from '../message/limits.ts'
import { CorespunResponse } from '../fetch/response.ts'
import type { HttpRequest } from '../app/routes.ts'
import { StatusError } from '../app/status-error.ts'
import { files } from './files.ts'

/** Options of {@link openApiPage}. */
export interface OpenApiPageOptions {
  /** The URL of the document, relative to the page or absolute. Default '/openapi.json'. */
  readonly document?: string
  /** Default 'API'. */
  readonly title?: string
}

const OPTIONS = { document: text('/openapi.json'), title: text('API') }

/** Not a literal, so that bundlers leave it to the installation. */
const PACKAGE = 'swagger-ui-dist'
const ASSETS = new Set(['swagger-ui.css', 'swagger-ui-bundle.js'])
/** Swagger UI sets styles of elements, and has its icons in its style sheet. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')
const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
}

/**
 * Returns a handler for a pattern that ends with `*`: the page is at `/docs/` for `'/docs/*'`. It needs the
 * package `swagger-ui-dist` (`npm install swagger-ui-dist`).
 * @throws {HttpError} `HTTP_ARGUMENT` for invalid options, and if the package is not installed.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, openApiPage } from 'corespun/http'
 *
 * const app = createApp({ routes: { '/docs/*': openApiPage({ title: 'Users' }) } })
 * assert.match(await (await app.inject('/docs/')).text(), /<title>Users<\/title>/)
 * ```
 */
export function openApiPage(options?: OpenApiPageOptions): (request: HttpRequest) => Promise<Response> {
  const { document, title } = optionsOf(options, OPTIONS, wrong, 'openApiPage()')
  const assets = files(folderOf(PACKAGE), { headers: HEADERS, cacheControl: HEADERS['cache-control'] })
  const page = typed('text/html;charset=utf-8', pageOf(title))
  const script = typed('text/javascript;charset=utf-8', scriptOf(document))
  return async (request) => {
    const path = Object.values(request.params).at(-1) ?? ''
    if (ASSETS.has(path)) return assets(request)
    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw new StatusError(405, 'the page is read-only', { headers: { allow: 'GET, HEAD' } })
    if (path === '') return page.clone()
    if (path === 'page.js') return script.clone()
    throw new StatusError(404, 'no such file')
  }
}

/** @throws {HttpError} `HTTP_ARGUMENT` if the package is not installed. */
export function folderOf(name: string): string {
  const { createRequire } = process.getBuiltinModule('node:module')
  for (const from of [`${process.cwd()}/`, import.meta.url]) {
    try {
      return dirname(createRequire(from).resolve(`${name}/package.json`))
    } catch {
      // perhaps beside this package
    }
  }
  throw wrong('openApiPage()', `the package ${name}, an optional peer: npm install ${name}`, undefined, {
    verb: 'needs',
  })
}

function typed(type: string, body: string): CorespunResponse {
  return new CorespunResponse(body, { headers: { ...HEADERS, 'content-type': type } })
}

function pageOf(title: string): string {
  const escaped = title.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped}</title>
<link rel="stylesheet" href="swagger-ui.css">
</head>
<body>
<div id="ui"></div>
<script src="swagger-ui-bundle.js"></script>
<script src="page.js"></script>
</body>
</html>
`
}

function scriptOf(url: string): string {
  const options = { url, dom_id: '#ui', deepLinking: true, validatorUrl: null, queryConfigEnabled: false }
  return `SwaggerUIBundle(${JSON.stringify(options)})\n`
}
