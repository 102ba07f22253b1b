/**
 * The smallest app, for tests of what surrounds it.
 * It never computes.
 */
export default () => new Response('hello')
