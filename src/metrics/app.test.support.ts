/**
 * The app of a server in a zone, whose figures any of its workers shows.
 *
 * Each worker loads it.
 */
import { metrics } from './index.ts'

export default {
  routes: { '/counted': () => 'counted', '/metrics': metrics() },
  port: 0,
}
