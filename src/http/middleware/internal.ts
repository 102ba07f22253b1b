/**
 * What other folders of this package need of middleware; not part of its API.
 *
 * Apart from http/internal.ts, whose parts a program loads that serves nothing.
 */
export { countTrace } from '../app/counted.ts'
export { onClosed } from '../app/logged.ts'
export { isClientDisconnected } from './logs/access-log.ts'
export { EVERYWHERE, FOR_ROUTE } from '../app/middleware.ts'
export { SharedCounts } from './rates/shared.ts'
