/**
 * Finds the route, parameters and canonical path of a request target, once for recurring targets.
 *
 * A core that caches targets assigns each a number. The result is stored under that number and is valid while
 * the text is the same. A recent target costs one array access. A client that always requests new targets
 * evicts the others, and the array does not grow.
 */
import type { Exchange } from '../message/core-interface.ts'
import type { Compiled } from './routes.ts'
import { paramsOf, type Router, type Route } from './router.ts'
import { readTarget, type Target } from '../message/target.ts'

/** What a target leads to. */
export interface Found {
  /** As on the wire. */
  readonly target: string
  /** Taken apart. */
  readonly read: Target
  /** Undefined when no route's pattern fits. */
  readonly route: Route<Compiled> | undefined
  /** What the pattern named, decoded and frozen; undefined when it named nothing. */
  readonly params: Readonly<Record<string, string>> | undefined
  /** The route's endpoint for GET, if it has one. */
  readonly onGet: Compiled | undefined
}

export class Finder {
  readonly #router: Router<Compiled>
  readonly #found: (Found | undefined)[] = []

  constructor(router: Router<Compiled>) {
    this.#router = router
  }

  /** Returns the result for the target of an exchange, or `undefined` if the target is invalid. */
  find(exchange: Exchange): Found | undefined {
    const { target, targetNumber } = exchange
    if (targetNumber < 0) return this.#search(target)
    const known = this.#found[targetNumber]
    if (known !== undefined && known.target === target) return known
    const found = this.#search(target)
    while (this.#found.length < targetNumber) this.#found.push(undefined) // no holes
    this.#found[targetNumber] = found
    return found
  }

  #search(target: string): Found | undefined {
    const read = readTarget(target)
    if (read === undefined) return undefined
    const values: string[] = []
    const route = this.#router.find(read.path, values)
    const params = route === undefined || values.length === 0 ? undefined : paramsOf(route.names, values)
    if (params === null) return undefined
    const onGet = route?.methods.get('GET') ?? route?.methods.get('*')
    return { target, read, route, params, onGet }
  }
}
