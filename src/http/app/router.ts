/**
 * Routes: patterns compiled into a map of fixed paths and a tree of segments.
 *
 * `:name` matches one segment that is not empty. A `*` or `*name` at the end matches all that follows, which
 * may be empty. Fixed segments have priority over named ones and these over the rest, segment by segment from
 * the left. Two patterns that match the same requests are an error when the server starts. The router is
 * independent of handlers: a route carries any endpoint for each method.
 */
import { HttpError } from '../errors.ts'
import { canonicalPath } from '../message/target.ts'

/** The names in a pattern, as the type of `request.params`. */
export type Params<Pattern extends string> = {
  readonly [Name in ParamNames<Pattern>]: string
}
type ParamNames<Pattern extends string> = Pattern extends `${infer Segment}/${infer Rest}`
  ? ParamName<Segment> | ParamNames<Rest>
  : ParamName<Pattern>
type ParamName<Segment extends string> = Segment extends `:${infer Name}`
  ? Name
  : Segment extends '*'
    ? '*'
    : Segment extends `*${infer Name}`
      ? Name
      : never

/** A pattern and its endpoint for each method; `*` is the endpoint of all other methods. */
export interface Route<Endpoint> {
  readonly pattern: string
  /** Names of what was captured, from the left. */
  readonly names: readonly string[]
  readonly methods: Map<string, Endpoint>
  /** For `Allow`: the methods, HEAD and OPTIONS included. */
  allow: string
}

/** Captured values by name, decoded, and frozen since they are shared; null if one is not UTF-8. */
export function paramsOf(
  names: readonly string[],
  values: readonly string[],
): Readonly<Record<string, string>> | null {
  const params: Record<string, string> = {}
  try {
    for (let at = 0; at < names.length; at += 1) params[names[at]] = decode(values[at])
    return Object.freeze(params)
  } catch {
    return null // malformed percent-encoding: the response is 400
  }
}

function decode(value: string): string {
  return value.includes('%') ? decodeURIComponent(value) : value
}

interface TrieNode<Endpoint> {
  readonly fixed: Map<string, TrieNode<Endpoint>>
  named: TrieNode<Endpoint> | undefined
  route: Route<Endpoint> | undefined
  rest: Route<Endpoint> | undefined
}

export class Router<Endpoint> {
  /** Routes without names, by their path. */
  readonly #fixed = new Map<string, Route<Endpoint>>()
  readonly #root: TrieNode<Endpoint> = newTrieNode()
  readonly #routes: Route<Endpoint>[] = []
  #hasTree = false

  /**
   * Add an endpoint for a method of a pattern.
   * @throws {HttpError} `HTTP_ROUTE` for a pattern that cannot be read, `HTTP_ROUTE_CONFLICT` when another
   *   one matches the same requests.
   */
  add(pattern: string, method: string, endpoint: Endpoint): void {
    const { segments, names, hasRest } = parsePattern(pattern)
    const { node, slot } = this.#nodeFor(segments, hasRest)
    const found = node[slot]
    const route = found ?? { pattern, names, methods: new Map<string, Endpoint>(), allow: '' }
    if (found === undefined) {
      node[slot] = route
      this.#routes.push(route)
    } else if (found.pattern !== pattern || found.methods.has(method)) {
      throw new HttpError('HTTP_ROUTE_CONFLICT', { pattern, other: found.pattern, method })
    }
    route.methods.set(method, endpoint)
    route.allow = allowOf([...route.methods.keys()])
    if (names.length === 0 && !hasRest) this.#fixed.set(segments.map((s) => `/${s}`).join(''), route)
    else this.#hasTree = true
  }

  #nodeFor(
    segments: readonly string[],
    hasRest: boolean,
  ): { node: TrieNode<Endpoint>; slot: 'route' | 'rest' } {
    let node = this.#root
    for (const segment of segments) {
      if (segment.startsWith(':')) node = node.named ??= newTrieNode()
      else {
        let next = node.fixed.get(segment)
        if (next === undefined) node.fixed.set(segment, (next = newTrieNode()))
        node = next
      }
    }
    return { node, slot: hasRest ? 'rest' : 'route' }
  }

  /** Returns the route for a path and pushes the captured values onto `values`. */
  find(path: string, values: string[]): Route<Endpoint> | undefined {
    const route = this.#fixed.get(path)
    if (route !== undefined || !this.#hasTree || path.charCodeAt(0) !== 47) return route
    return find(this.#root, path, 1, values)
  }

  /** All routes, in the order they were added. */
  get routes(): readonly Route<Endpoint>[] {
    return this.#routes
  }
}

/** Each node is reached by one prefix of the path only, so this looks at each node once at most. */
function find<Endpoint>(
  node: TrieNode<Endpoint>,
  path: string,
  from: number,
  values: string[],
): Route<Endpoint> | undefined {
  const slash = path.indexOf('/', from)
  const end = slash < 0 ? path.length : slash
  const segment = path.slice(from, end)
  const fixed = node.fixed.get(segment)
  if (fixed !== undefined) {
    const found = slash < 0 ? fixed.route : find(fixed, path, end + 1, values)
    if (found !== undefined) return found
  }
  const named = node.named
  if (named !== undefined && end > from) {
    const depth = values.push(segment)
    const found = slash < 0 ? named.route : find(named, path, end + 1, values)
    if (found !== undefined) return found
    values.length = depth - 1
  }
  if (node.rest !== undefined) values.push(path.slice(from))
  return node.rest
}

function newTrieNode<Endpoint>(): TrieNode<Endpoint> {
  return { fixed: new Map(), named: undefined, route: undefined, rest: undefined }
}

/** The methods a route allows, including those that every route allows. */
function allowOf(methods: readonly string[]): string {
  if (methods.includes('*')) return 'GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE'
  const all = new Set([...methods, 'OPTIONS', ...(methods.includes('GET') ? ['HEAD'] : [])])
  return [...all].sort().join(', ')
}

function beginning(pattern: string): string {
  const [, method, path] = /^([A-Za-z]+)\s+(\/.*)$/.exec(pattern) ?? []
  const advice = method && `; methods are a table: { '${path}': { ${method.toUpperCase()}: handler } }`
  return `it must begin with '/'${advice ?? ''}`
}

/** @throws {HttpError} `HTTP_ROUTE`. */
function parsePattern(pattern: string): { segments: string[]; names: string[]; hasRest: boolean } {
  if (!pattern.startsWith('/')) throw badPattern(pattern, beginning(pattern))
  if (/[?#\\{}()[\]+]/.test(pattern))
    throw badPattern(pattern, 'a path has no ? # \\ { } ( ) [ ] +; names are written :name, the rest *')
  const segments = pattern.slice(1).split('/')
  const names: string[] = []
  let hasRest = false
  for (const [at, segment] of segments.entries()) {
    if (segment === '.' || segment === '..') throw badPattern(pattern, 'no request has a path with . or ..')
    if (segment.startsWith('*')) {
      if (at < segments.length - 1) throw badPattern(pattern, 'a * can only be its last segment')
      hasRest = true
      names.push(segment === '*' ? '*' : nameIn(pattern, segment))
    } else if (segment.startsWith(':')) names.push(nameIn(pattern, segment))
    else if (/[*]/.test(segment)) throw badPattern(pattern, 'a * must be at the beginning of a segment')
  }
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) throw badPattern(pattern, `it names '${twice}' twice; use two names`)
  const fixed = hasRest ? segments.slice(0, -1) : segments
  return { segments: fixed.map((segment) => canonicalSegment(segment)), names, hasRest }
}

function nameIn(pattern: string, segment: string): string {
  const name = segment.slice(1)
  if (!/^[A-Za-z_$][\w$]*$/.test(name) || name === '__proto__')
    throw badPattern(
      pattern,
      name === ''
        ? `missing parameter name after '${segment[0]}'`
        : `invalid parameter name '${name}'; letters, digits and _, not a digit first`,
    )
  return name
}

/** A segment in the form of a canonical path: 'café' becomes 'caf%C3%A9'. */
function canonicalSegment(segment: string): string {
  if (segment.startsWith(':')) return segment
  return canonicalPath(new URL(`http://x/${segment}`).pathname.slice(1))
}

function badPattern(pattern: string, reason: string): HttpError {
  return new HttpError('HTTP_ROUTE', { pattern, reason })
}
