/**
 * Who asks, by the header `authorization`: Basic (RFC 7617) and Bearer (RFC 6750).
 *
 * The program decides whether credentials are valid; here they are parsed, and what is missing or invalid
 * gets a 401 that names the schemes. Tokens are not decoded: for JWT, `bearer` calls a library such as jose.
 */
import { type Kind, callback, optionsOf } from '../../../base/index.ts'
import type { Middleware } from '../../app/middleware.ts'
import type { RequestValue } from '../../app/request-value.ts'
import type { HttpRequest } from '../../app/routes.ts'
import { StatusError } from '../../app/status-error.ts'
import { wrong } from '../../message/limits.ts'

/** How {@link authenticate} finds out who asks; at least one of `basic` and `bearer` is required. */
export interface AuthenticateOptions<User> {
  /** Returns whose name and password these are; `undefined` (or `null`, or `false`) for invalid ones. */
  readonly basic?: (
    name: string,
    password: string,
    request: HttpRequest,
  ) => User | undefined | Promise<User | undefined>
  /** Returns whose token this is; `undefined` (or `null`, or `false`) for an invalid one. */
  readonly bearer?: (token: string, request: HttpRequest) => User | undefined | Promise<User | undefined>
  /** What browsers show when they ask for a password. Default 'private'. */
  readonly realm?: string
}

const REALM: Kind<string> = {
  expected: 'text without quotes and control characters',
  accepts: (realm) => typeof realm === 'string' && /^[ !#-[\]-~]*$/.test(realm),
  default: 'private',
}
const OPTIONS = { basic: callback, bearer: callback, realm: REALM }
const TOKEN = /^[\w.~+/-]+=*$/
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

/**
 * Middleware that sets who asks; requests without valid credentials get a 401 (`UNAUTHORIZED`).
 * @param user Where handlers find it: `requestValue<User>('user')`.
 * @throws {HttpError} `HTTP_ARGUMENT` for invalid options.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { authenticate, createApp, requestValue, use } from 'corespun/http'
 *
 * const user = requestValue<string>('user')
 * const tokens = new Map([['secret', 'Ada']])
 * const guard = authenticate(user, { bearer: (token) => tokens.get(token) })
 * const app = createApp({ routes: use({ '/me': (request) => user.get(request) }, guard) })
 * assert.equal((await app.inject('/me')).status, 401)
 * const headers = { authorization: 'Bearer secret' }
 * assert.equal(await (await app.inject('/me', { headers })).text(), 'Ada')
 * ```
 */
export function authenticate<User>(user: RequestValue<User>, options: AuthenticateOptions<User>): Middleware {
  if (typeof (user as Partial<RequestValue<User>> | undefined)?.set !== 'function')
    throw wrong('authenticate(): user', 'what requestValue() returns', user)
  const { realm } = optionsOf(options, OPTIONS, wrong, 'authenticate()')
  const { basic, bearer } = options
  if (basic === undefined && bearer === undefined)
    throw wrong('authenticate()', '`basic` or `bearer`', undefined, { verb: 'needs' })
  const schemes = [
    ...(basic === undefined ? [] : [`Basic realm="${realm}", charset="UTF-8"`]),
    ...(bearer === undefined ? [] : [`Bearer realm="${realm}"`]),
  ].join(', ')
  const find = (request: HttpRequest): User | undefined | Promise<User | undefined> => {
    const [, scheme, text] = /^(\S+) +(\S+)$/.exec(request.headers.get('authorization') ?? '') ?? []
    const name = scheme?.toLowerCase()
    if (name === 'bearer' && bearer !== undefined && TOKEN.test(text)) return bearer(text, request)
    const pair = name === 'basic' && basic !== undefined ? credentialsIn(text) : undefined
    return pair === undefined ? undefined : basic!(...pair, request)
  }
  return async (request, next) => {
    const found: unknown = await find(request)
    // What searches return that find nobody: none of it is a user, whatever the types allow.
    if (found === undefined || found === null || found === false)
      throw new StatusError(401, 'credentials are missing or invalid', {
        headers: { 'www-authenticate': schemes },
      })
    user.set(request, found as User)
    return next()
  }
}

/** Name and password; the first colon ends the name. */
function credentialsIn(text: string): [string, string] | undefined {
  if (!BASE64.test(text)) return undefined
  const decoded = Buffer.from(text, 'base64').toString()
  const at = decoded.indexOf(':')
  return at < 0 ? undefined : [decoded.slice(0, at), decoded.slice(at + 1)]
}
