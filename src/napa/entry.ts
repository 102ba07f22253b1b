/**
 * What threads load by URL to run calls of napajs: the API, whose door makes it the global `napa`.
 *
 * Zones that `napa.zone.create` makes load it before their first task.
 */
// oxlint-disable-next-line import/no-unassigned-import -- makes the global
import './index.ts'

export { call, evaluate } from './call.ts'

/** As in napajs: programs ask by `typeof __in_napa` where they run. */
export function setup(): void {
  Object.assign(globalThis, { __in_napa: true })
}
