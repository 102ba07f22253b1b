/**
 * What the server has confirmed, and what that means when it has not.
 *
 * Only 10071, a wrong sequence, means that a key is taken: its reason is a write that is committed. With
 * 10164 a leader refuses a write because another one of its subject is not committed, and may never be.
 * Everything that may be a server without a leader is `FLEET_TIMEOUT`: not confirmed, and to be repeated;
 * taken for a conflict it would lose jobs and results.
 */
import { reasonOf } from '../../../base/index.ts'
import { FleetError } from '../../errors.ts'

/** The timeout of the server's confirmation of one operation. */
export const CONFIRM_MS = 5000
const WRONG_SEQUENCE = 10071
/** An error code of the server: a write of the same subject is on its way, and nothing is decided. */
export const IN_FLIGHT = 10164
const UNAVAILABLE = 503
/** What the server keeps has reached its limit. It is refused with 503 too, and for certain. */
const FULL = new Set([10023, 10047])
const ENDED: ReadonlySet<unknown> = new Set(['ClosedConnectionError', 'DrainingConnectionError'])

/**
 * What the server confirms.
 * @throws {FleetError} `FLEET_CONFLICT`, `FLEET_TIMEOUT`, `FLEET_CLOSED`, `FLEET_DENIED` or `FLEET_ENGINE`.
 */
export async function confirmed<Value>(
  operation: string,
  work: Promise<Value>,
  expected?: { readonly key: string; readonly revision: number },
): Promise<Value> {
  try {
    return await work
  } catch (cause) {
    const { code, status, name } = Object(cause) as Partial<Record<'code' | 'status' | 'name', unknown>>
    if (expected !== undefined && isWrongSequence(cause))
      throw new FleetError('FLEET_CONFLICT', expected, { cause })
    if (ENDED.has(name)) throw new FleetError('FLEET_CLOSED', { reason: reasonOf(cause) }, { cause })
    const denied = deniedIn(cause)
    if (denied !== undefined) throw new FleetError('FLEET_DENIED', { operation, reason: denied }, { cause })
    if (FULL.has(code as number)) {
      const reason = `${reasonOf(cause)}: its store is full; raise max_file_store, or free space`
      throw new FleetError('FLEET_ENGINE', { operation, reason }, { cause })
    }
    const isOpen =
      code === IN_FLIGHT ||
      status === UNAVAILABLE ||
      ['TimeoutError', 'RequestError', 'NoRespondersError'].includes(name as string)
    if (isOpen) throw new FleetError('FLEET_TIMEOUT', { operation, timeoutMs: CONFIRM_MS }, { cause })
    throw new FleetError('FLEET_ENGINE', { operation, reason: reasonOf(cause) }, { cause })
  }
}

/** A write whose condition does not hold, by what is committed. */
export const isWrongSequence = (error: unknown): boolean =>
  (Object(error) as { code?: number }).code === WRONG_SEQUENCE

/** What the user of the connection may not publish or subscribe to. */
function deniedIn(cause: unknown): string | undefined {
  const errors = [cause, Object(cause).cause] as (Error | undefined)[]
  return errors.find((error) => error?.name === 'PermissionViolationError')?.message
}

/** A key as a part of a subject, whatever it contains. */
export function token(key: string): string {
  const written = key.replace(/[^\w-]/gu, (char) =>
    [...Buffer.from(char)].map((byte) => `=${byte.toString(16).padStart(2, '0')}`).join(''),
  )
  return written === '' ? '=' : written
}

/** The key; of what `token` has not written the part itself. */
export function keyOf(written: string): string {
  if (written === '=') return ''
  try {
    return decodeURIComponent(written.replaceAll('=', '%'))
  } catch {
    return written // from somebody who may write there, and does it in another way
  }
}
