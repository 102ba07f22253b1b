/**
 * An app without a mistake.
 *
 * For the mistakes that are outside of the app, such as its port.
 */
export const routes = { '/': 'x' }
