/**
 * Which values are apps for the `(req, res)` of node:http.
 *
 * Apart from what runs them: whoever loads an app of any kind asks this.
 */
import type { Server } from 'node:http'
import type { Listener } from './node-exchange.ts'

/**
 * An app or handler for the requests and responses of node:http: a function `(req, res)`, such as an app of
 * express or connect, koa's `callback()`, the handler of Next.js; an app of koa, fastify or Nest itself; or
 * an http.Server, which does not listen itself.
 */
export type NodeApp =
  | ((req: never, res: never, rest: never) => unknown)
  /** An http.Server, whose listeners of `request` and `upgrade` are called. */
  | { readonly listening: boolean; closeIdleConnections(): void }
  /** An app of koa. */
  | { callback(): (req: never, res: never) => unknown }
  /** An app of fastify. */
  | { ready(): PromiseLike<unknown>; routing(req: never, res: never): unknown }
  /** An app of Nest; its adapter has the app of express or fastify to which it adds its routes. */
  | {
      init(): PromiseLike<unknown>
      getHttpAdapter(): { getInstance(): unknown; close(): unknown }
      getHttpServer?(): object
      close(): PromiseLike<unknown>
    }

/** An app of Nest. */
export type Nest = Extract<NodeApp, { getHttpAdapter(): unknown }>

/** Parameters of a function whose second one is a response of node:http by its name. */
const NODE_PARAMETERS = /^[^(]*\(\s*(?:[\w$]+|\{[^{}]*\})\s*,\s*_?res(?:p|ponse)?\s*[,)]/

/**
 * Whether a value is an app for the `(req, res)` of node:http. By its methods: of express and connect it is a
 * function, of koa, fastify and Nest an object. By the names of its parameters: koa's `callback()`, the
 * handler of Next.js. Other functions of two parameters are handlers.
 */
export function isNodeApp(value: unknown): value is NodeApp {
  if (value === null || (typeof value !== 'function' && typeof value !== 'object')) return false
  if (has(value, 'fetch')) return false
  if (typeof value === 'function')
    return (
      value.length >= 2 &&
      (has(value, 'handle') ||
        has(value, 'set') ||
        has(value, 'use') ||
        NODE_PARAMETERS.test(Function.prototype.toString.call(value)))
    )
  return isKoa(value) || isNest(value) || isServer(value) || (has(value, 'inject') && has(value, 'register'))
}

/** Whether a value is an http.Server. */
export function isServer(value: object): value is Server {
  return has(value, 'closeIdleConnections') && has(value, 'emit')
}

export function isKoa(value: object): value is { callback(): Listener } {
  return has(value, 'callback') && has(value, 'use')
}

export function isNest(value: object): value is Nest {
  return has(value, 'getHttpAdapter') && has(value, 'init')
}

export function has(value: object, name: string): boolean {
  return typeof (value as Record<string, unknown>)[name] === 'function'
}
