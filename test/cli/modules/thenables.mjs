/**
 * For test/zone/thenables.test.mjs: what query builders are that can be called.
 * A function with a `then` that can be read once only: `await` makes 5 of it.
 */
export default function later() {
  const then = (fulfil) => fulfil(5)
  let reads = 0
  return Object.defineProperty(() => {}, 'then', { get: () => (reads++ === 0 ? then : undefined) })
}
