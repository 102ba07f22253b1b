/**
 * The names of content codings, in a file of their own: the published types of options refer to them, and
 * must not need the types of Node that the engines do.
 */

/** A content coding that responses are sent in. */
export type Coding = 'br' | 'gzip' | 'zstd'
