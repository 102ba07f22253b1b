/**
 * A response with a declared status, on its way from a handler to the check of its contract.
 *
 * Its class is closed: a plain object with a status is a body like any other.
 */

/** What `respond` of a {@link RouteInput} returns. */
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
