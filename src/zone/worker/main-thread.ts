/**
 * The main thread as the worker of `zone.main`. It is loaded with the first call to that zone.
 *
 * It is a file of its own because the owner of zones imports it: what a thread of a zone begins with imports
 * the owner.
 */
import { Mail, native } from '../../native/index.ts'
import { thisBridge } from '../../bridge/index.ts'
import type { WorkerStart } from '../owner/thread.ts'
import { Dispatcher } from './dispatcher.ts'
// oxlint-disable-next-line import/no-unassigned-import -- before any task
import './handles.ts'

/** The main thread runs the tasks of `zone.main`, beside its program. */
export function joinMain({ zoneNumber, slot, zoneId, settings }: WorkerStart): void {
  const bridge = thisBridge()
  const events = { ready: nothing, leave: nothing, report: nothing }
  const dispatcher = new Dispatcher(bridge, zoneId, `${zoneId}/${slot}`, settings, events)
  bridge.onMail(Mail.abort, (token, serial, why) => dispatcher.abandon(token, serial, why))
  bridge.isBesideProgram = true
  bridge.notesDepth = true
  bridge.runTasks = dispatcher.run
  if (native.attach(zoneNumber, slot) === 1) dispatcher.run()
}

function nothing(): void {}
