/**
 * The preset exports a listener for `(req, res)` in place of a server of its own.
 * corespun stays a package of node_modules: a part of it beside the output would be a second copy.
 */
export default {
  preset: 'node-listener',
  compatibilityDate: '2026-11-01',
  serveStatic: true,
  rollupConfig: { external: [/^corespun(\/|$)/] },
}
