/**
 * An app with a method in lower case.
 *
 * The router accepts upper case only.
 */
export const routes = { '/a': { get: () => 'x' } }
