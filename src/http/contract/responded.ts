/**
 * A response with a declared status, on its way from a handler to the check of its contract.
 *
 * Its class is closed: a plain object with a status is a body like any other.
 */

/**
 * What `respond` of a {@link RouteInput} returns.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { type Schema, createApp, route } from 'corespun/http'
 *
 * const anything: Schema = {
 *   '~standard': { version: 1, vendor: 'example', validate: (value) => ({ value }) },
 * }
 * const made = route({ responses: { 201: anything } }, ({ respond }) => respond(201, { id: 7 }))
 * const app = createApp({ routes: { '/users': { POST: made } } })
 * assert.equal((await app.inject('/users', { method: 'POST' })).status, 201)
 * ```
 */
export class Responded {
  readonly #status: number
  readonly #body: unknown
  readonly #headers: Readonly<Record<string, string>> | undefined

  /** @internal */
  constructor(status: number, body: unknown, headers: Readonly<Record<string, string>> | undefined) {
    this.#status = status
    this.#body = body
    this.#headers = headers
  }

  /** Its status. */
  get status(): number {
    return this.#status
  }

  /** Its body, before it is JSON. */
  get body(): unknown {
    return this.#body
  }

  /** Its headers. @internal */
  get headers(): Readonly<Record<string, string>> | undefined {
    return this.#headers
  }
}
