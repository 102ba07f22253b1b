/**
 * The cache of all workers instead of files, and a folder to deploy, which needs what `corespun serve` loads.
 * @type {import('next').NextConfig}
 */
export default {
  output: 'standalone',
  cacheHandler: new URL('./cache-handler.mjs', import.meta.url).pathname,
  cacheMaxMemorySize: 0,
  serverExternalPackages: ['corespun'],
  outputFileTracingRoot: import.meta.dirname,
  outputFileTracingIncludes: {
    '/*': ['./serve.mjs', './cache-handler.mjs', './node_modules/corespun/**', './node_modules/@corespun/**'],
  },
}
