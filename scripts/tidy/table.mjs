/**
 * The tables that tidy compares the code with: who may import whom, and how large things may be.
 *
 * This is the one place. docs/ARCHITECTURE.md explains the order; a rule that is not here or in a file of
 * rules/ is not a rule.
 */

/**
 * Modules of src/ by rank, lowest first; a module may import modules of lower ranks, through their index.ts.
 * Those of one rank do not know each other. `.` is src/index.ts, the door of the package.
 */
export const MODULE_RANKS = [
  ['base'],
  ['native'],
  ['transport'],
  ['port'],
  ['store', 'sync'],
  ['zone'],
  ['fiber'],
  ['arrow'],
  ['http', 'cluster', 'telemetry', 'napa'],
  ['.'],
  ['cli'],
]

/** Crates of crates/ and the crates of ours that each may depend on. */
export const CRATES = {
  port: [],
  store: ['port'],
  http: ['port'],
  node: ['port', 'store', 'http'],
}

/** The only crate that may depend on these. */
export const BINDING_CRATE = 'node'
/** What only the binding may see: napi, and what reaches into Node. */
export const BINDING_ONLY = /^(napi|napi-.*|libuv-sys.*)$/

/** Most lines of a function, from its first to its last. */
export const FUNCTION_LINES_MAX = 70
/** Most characters of a line of code. */
export const LINE_CHARS_MAX = 110
/** Fewest lines of the comment that opens a file. */
export const HEADER_LINES_MIN = 2

/** Folders of src/ whose code may say `any`. */
export const ANY_ALLOWED = ['src/native/']
