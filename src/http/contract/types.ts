/**
 * The types of contracts: what a route declares, what its handler receives and may return.
 *
 * Everything follows from the type of the contract, one conditional type for each part, so that a project
 * with hundreds of routes still compiles fast: scripts/check/contract-types.mjs counts what a route costs
 * the compiler.
 */
import type { HttpRequest, ResponseValue } from '../app/routes.ts'
import type { Responded } from './responded.ts'
import type { LargeBody } from './large.ts'
import type { Schema, SchemaOutput } from './schema.ts'

/** Schemas of the bodies of responses by status; `null`: a response without a body. */
export type ResponseSchemas = { readonly [status: number]: Schema | null }

/** What `route` declares. All of it is optional. */
export interface Contract {
  /** Values of the named segments of the pattern, as strings. */
  readonly params?: Schema
  /** Values of the query by name: strings; an array for a name that occurs more than once. */
  readonly query?: Schema
  /** Headers by name in lower case. */
  readonly headers?: Schema
  /** Cookies by name, percent-decoded. */
  readonly cookies?: Schema
  /** The body, parsed as JSON; `undefined` for a request without one. */
  readonly body?: Schema
  /** The bodies of responses by status. Default: anything is sent, and nothing is checked. */
  readonly responses?: ResponseSchemas
  /** Whether responses are checked. Default: unless NODE_ENV is `production` when `route` is called. */
  readonly checkResponses?: boolean
  /**
   * Most bytes of a body, 0 or more; a larger one is 413. Default: 128 KiB, or with `large` the server's
   * `bodyBytesMax`, which applies as well.
   */
  readonly bodyBytesMax?: number
  /** Parses and checks large bodies elsewhere. Default: here. */
  readonly large?: LargeBody
  /** For OpenAPI: one line. */
  readonly summary?: string
  /** For OpenAPI: CommonMark. */
  readonly description?: string
  /** For OpenAPI: groups. */
  readonly tags?: readonly string[]
  /** For OpenAPI: the unique name of the operation. Default: made of method and pattern. */
  readonly operationId?: string
  /** For OpenAPI. Default false. */
  readonly deprecated?: boolean
  /** For OpenAPI: further fields of the operation, such as `security`. */
  readonly openApi?: Readonly<Record<string, unknown>>
}

type Part<S, Otherwise> = S extends Schema ? SchemaOutput<S> : Otherwise
type Named<Pattern extends string> = HttpRequest<Pattern>['params']
type Bodies<C extends Contract> = C['responses'] extends ResponseSchemas ? C['responses'] : AnyBodies
// oxlint-disable-next-line typescript/no-explicit-any -- without `responses`, anything may be sent
type AnyBodies = { readonly [status: number]: Schema<any> | null }

/** The body of a response with this schema. */
export type ResponseBodyOf<S> = S extends Schema ? SchemaOutput<S> : null | undefined

/** What the handler of a contract receives. */
export interface RouteInput<C extends Contract, Pattern extends string = string> {
  /** The request itself; its body has been read if the contract has `body`. */
  readonly request: HttpRequest<Pattern>
  /** What the schema made of them; without one, the strings of the pattern's names. */
  readonly params: Part<C['params'], Named<Pattern>>
  /** What the schema made of it; `undefined` without one. */
  readonly query: Part<C['query'], undefined>
  /** What the schema made of them; `undefined` without one. */
  readonly headers: Part<C['headers'], undefined>
  /** What the schema made of them; `undefined` without one. */
  readonly cookies: Part<C['cookies'], undefined>
  /** What the schema made of it; `undefined` without one. */
  readonly body: Part<C['body'], undefined>
  /** The response with a declared status and its body: `return respond(404, { reason })`. */
  respond<Status extends keyof Bodies<C> & number>(
    status: Status,
    body: ResponseBodyOf<Bodies<C>[Status]>,
    headers?: Readonly<Record<string, string>>,
  ): Responded
}

/** The first successful status, in their order: the one of a value that is returned without a status. */
type First<R> = 200 extends keyof R
  ? R[200]
  : 201 extends keyof R
    ? R[201]
    : 202 extends keyof R
      ? R[202]
      : 204 extends keyof R
        ? R[204]
        : never
/** `never` in a union of what may be returned: a contract of errors alone. */
type Plain<S> = [S] extends [never] ? never : S extends Schema ? SchemaOutput<S> : null | undefined | void

/** What the handler of a contract may return. */
export type RouteReturned<C extends Contract> = C['responses'] extends ResponseSchemas
  ? Plain<First<C['responses']>> | Responded | Response
  : ResponseValue | Responded

/** A handler with a contract, for `routes`. */
export interface Route<C extends Contract = Contract, Pattern extends string = string> {
  /** Responds as the handler of a route. */
  (request: HttpRequest<Pattern>): ResponseValue | Promise<ResponseValue>
  /** What was declared. */
  readonly '~contract': C
}
