/**
 * Is this Node new enough? Answered before anything else is loaded.
 *
 * The door (run.mjs) imports only this file statically and the rest with `import()`, so an old Node gets one
 * message with what to install instead of a syntax error. Both are therefore written in the JavaScript of
 * 2019: no `??`, no private fields, nothing that Node 12 cannot parse.
 */

/** The same as `engines.node` of package.json; a test compares the two. */
export const NODE_RANGE = '^20.19 || ^22.12 || >=24'

/**
 * The one sentence for a Node outside {@link NODE_RANGE}; '' for one inside it.
 * @param {string} version As in `process.versions.node`.
 */
export function nodeComplaint(version) {
  const parts = version.split('.').map(Number)
  const [major, minor] = parts
  const fits = (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major >= 24
  if (fits) return ''
  return (
    'Corespun needs Node.js ' +
    NODE_RANGE +
    ' and this is ' +
    version +
    ': install Node 24 from https://nodejs.org.'
  )
}

/**
 * Run `main` on a Node that is new enough; otherwise print the sentence and exit with 1.
 * @param {() => Promise<number>} main Resolves to the exit code.
 */
export function onSupportedNode(main) {
  const complaint = nodeComplaint(process.versions.node)
  if (complaint !== '') {
    console.error(complaint)
    process.exit(1)
  }
  main().then(
    function (code) {
      process.exitCode = code
    },
    function (error) {
      console.error(error instanceof Error && error.name === 'Stop' ? error.message : error)
      process.exitCode = 1
    },
  )
}
