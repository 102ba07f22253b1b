/**
 * What the tests of zones share: a zone for the length of a test, and deadlines that pass while a task runs.
 *
 * Not a test itself.
 */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { WAIT_MS_MAX } from '../../base/wait.test.support.ts'
import { parseSettings } from '../ground/settings.ts'
import { type Zone, ZoneError, type ZoneOptions, type ZoneSettings, zone } from '../index.ts'
import { make } from './zones.ts'

export { until } from '../../base/wait.test.support.ts'

let made = 0

/** Options of a zone, and those of its limits that no option sets. */
export type TestOptions = ZoneOptions & Partial<Pick<ZoneSettings, (typeof FIXED)[number]>>

const FIXED = ['taskBytesMax', 'broadcastsMax', 'callDepthMax', 'aheadMax', 'aheadBytesMax'] as const

/** A zone under a name that no other test of the file has. */
export function makeZone(given: TestOptions): Zone {
  const name = `test-${++made}`
  const isFixed = ([key]: [string, unknown]): boolean => FIXED.some((each) => each === key)
  const limits = Object.entries(given).filter(isFixed)
  if (limits.length === 0) return zone.create(name, given)
  const options = Object.entries(given).filter((entry) => !isFixed(entry))
  const settings = { ...parseSettings(Object.fromEntries(options)), ...Object.fromEntries(limits) }
  return make(name, settings) ?? assert.fail(`a zone is named ${name}`)
}

/** Run `body` with a zone of its own, whose workers have started, and close that. */
export async function inZone(settings: TestOptions, body: (own: Zone) => Promise<void>): Promise<void> {
  const own = makeZone(settings)
  try {
    await own.ready()
    await body(own)
  } finally {
    await own.close()
  }
}

/** Zones that tests have left idle, by their settings. */
const idle = new Map<string, Zone[]>()
after(() => Promise.all([...idle.values()].flat().map((each) => each.close())))

/**
 * Run `body` with some zones, which other tests with the same settings have used if they left them idle: a
 * worker costs more than most of what is tested in it.
 */
export async function inZones(
  settings: readonly TestOptions[],
  body: (...zones: Zone[]) => Promise<void>,
): Promise<void> {
  const kept = settings.map((each) => ({
    each,
    own: idle.get(JSON.stringify(each))?.pop() ?? makeZone(each),
  }))
  let isSound = false
  try {
    await body(...kept.map(({ own }) => own))
    isSound = true
  } finally {
    const left = kept.filter(({ each, own }) => {
      const { running, waiting } = own.stats()
      if (!isSound || running > 0 || waiting > 0) return true
      const key = JSON.stringify(each)
      idle.set(key, [...(idle.get(key) ?? []), own])
      return false
    })
    await Promise.all(left.map(({ own }) => own.close({ timeoutMs: 1000 })))
  }
}

/**
 * The error of a call whose deadline passes while its task runs. On a busy machine a short one passes before
 * the task has started; then the call is made again, with twice the time.
 */
export async function timedOut(
  call: (timeoutMs: number) => Promise<unknown>,
): Promise<ZoneError<'TASK_TIMEOUT'>> {
  for (let timeoutMs = 20; timeoutMs < WAIT_MS_MAX; timeoutMs *= 2) {
    const error = await call(timeoutMs).then(
      () => assert.fail(`the task has ended within ${timeoutMs} ms`),
      (reason: unknown) => reason,
    )
    assert.ok(error instanceof ZoneError && error.code === 'TASK_TIMEOUT', String(error))
    if ((error.facts as { started: boolean }).started) return error as ZoneError<'TASK_TIMEOUT'>
  }
  return assert.fail('no call of a task started before its deadline')
}

/** Repeat what the machine may keep from happening in time, until it has happened once. */
export async function once(attempt: () => Promise<boolean>, what: string): Promise<void> {
  for (let left = 20; left > 0; left--) if (await attempt()) return
  assert.fail(`not once in 20 attempts: ${what}`)
}

/** What broadcasts have left in a worker. */
export type Marked = { marks?: unknown[] }

/** Broadcast it: the worker notes `value`. */
export function mark(value: unknown): void {
  ;((globalThis as Marked).marks ??= []).push(value)
}

/** The values that {@link mark} has noted in this worker. */
export function marks(): unknown[] | undefined {
  return (globalThis as Marked).marks
}
