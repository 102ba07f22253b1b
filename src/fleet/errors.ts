/**
 * What a fleet refuses and how far calls fail, as errors.
 *
 * An error of the called function is not here: it arrives as it is. Neither are those of the zone that runs
 * the call on its host: `TASK_TIMEOUT`, `WORKER_DIED` and `ZONE_FULL` arrive as the `ZoneError`s of a zone.
 */
import {
  type ArgumentFacts,
  CorespunError,
  type Sentences,
  argumentSentence,
  refuser,
} from '../base/index.ts'
import { register } from '../transport/internal.ts'

/** The facts of errors of the file of `sqlite:`: its path, and what the system or SQLite reports about it. */
export interface FleetFileFacts {
  readonly file: string
  /** What is reported, the version of the file, or the name of the file system. */
  readonly what: string
}

/** The codes of {@link FleetError} with their facts. */
export interface FleetCodes {
  /** An argument or an option has a wrong value. */
  FLEET_ARGUMENT: ArgumentFacts
  /** An optional peer dependency that an address or an option needs is not installed. */
  FLEET_PEER_MISSING: { readonly name: string; readonly use: string; readonly reason: string }
  /** A certificate, a key, a .creds file or an nkey cannot be read or used; `path` is that of its file. */
  FLEET_CREDENTIALS: {
    readonly option: string
    readonly path: string | undefined
    readonly reason: string
    readonly expected: string
  }
  /** No server of the address accepts the connection; `remedy` is what to check. */
  FLEET_CONNECT: {
    readonly servers: string
    readonly reason: string
    readonly remedy: string
    /** Nobody is there: refused, unreachable, or a name without an address. A server may be there later. */
    readonly isAway: boolean
  }
  /** The server refuses the credentials, or their user may not do what the operation needs. */
  FLEET_DENIED: {
    readonly operation: string
    readonly reason: string
    /** What to check. Default: the credentials and permissions of NATS. */
    readonly remedy?: string
  }
  /** The connection is closed, by `close()` or by the server. */
  FLEET_CLOSED: { readonly reason: string }
  /** Calls, rooms and shared limits need messages, which this engine does not have. */
  FLEET_MESSAGES: { readonly use: string; readonly engine: string }
  /** This Node does not have what the address needs: `sqlite:` needs Node 22.13. */
  FLEET_NODE: { readonly use: string; readonly needs: string; readonly found: string }
  /** The folder of the file does not exist. */
  FLEET_FILE_FOLDER_MISSING: FleetFileFacts
  /** The file, or its folder, cannot be written. */
  FLEET_FILE_DENIED: FleetFileFacts
  /** The file is not a database of SQLite. */
  FLEET_FILE_FOREIGN: FleetFileFacts
  /** The file is damaged. */
  FLEET_FILE_CORRUPT: FleetFileFacts
  /** A newer version of the package has written the file. */
  FLEET_FILE_VERSION: FleetFileFacts
  /** A newer version of the package has written the tables of `postgres:`; this one has `known`. */
  FLEET_SCHEMA_VERSION: {
    readonly server: string
    readonly schema: string
    readonly version: number
    readonly known: number
  }
  /** The file is on a disk of another machine, such as NFS. */
  FLEET_FILE_REMOTE: FleetFileFacts
  /** No space is left for the file: what was to be written was not, and what it had is there. */
  FLEET_DISK_FULL: FleetFileFacts
  /** An operation was not confirmed in time, by a server or on disk: whether it was done is unknown. */
  FLEET_TIMEOUT: { readonly operation: string; readonly timeoutMs: number }
  /** The server refused an operation. */
  FLEET_ENGINE: { readonly operation: string; readonly reason: string }
  /** What all who use a stream must pass alike differs from what the servers have. */
  FLEET_MISMATCH: {
    readonly of: string
    readonly option: 'replicas' | 'ttlMs'
    readonly asked: number
    readonly found: number
  }
  /** A value has changed since the revision that the call names; 0 names a value that does not exist. */
  FLEET_CONFLICT: { readonly key: string; readonly revision: number }
  /** A value is larger than `valueBytesMax`; nothing was sent. */
  FLEET_TOO_LARGE: {
    readonly bytes: number
    readonly valueBytesMax: number
    /** What the bound is of. Default: the option `valueBytesMax`. */
    readonly limit?: 'valueBytesMax' | 'max_payload' | 'progress' | 'after'
  }
  /** No host has the zone, or none has the version; `versions` are those that hosts have. */
  ZONE_NOWHERE: {
    readonly zone: string
    readonly version: string | undefined
    readonly versions: readonly string[]
  }
  /** The module of a host has no such function; `exported` are those it has. */
  EXPORT_MISSING: { readonly zone: string; readonly name: string; readonly exported: readonly string[] }
  /** The host, or the way to it, was lost while it ran the call: whether the function has run is unknown. */
  HOST_LOST: { readonly zone: string; readonly host: string; readonly reason: string }
  /** The caller has ended, or the way to it is lost: the reason with which a host ends its call. */
  CALLER_LOST: { readonly zone: string; readonly silentMs: number }
  /** A host has sent more parts of a stream than its reader takes, or any for a call of another kind. */
  HOST_CREDIT: { readonly zone: string; readonly host: string; readonly partsMax: number }
  /** A job has failed for good; its `cause` is the last error, and its dead letter has all of them. */
  JOB_DEAD: {
    readonly zone: string
    readonly key: string
    readonly failures: number
    readonly hostsLost: number
  }
  /** A job was cancelled. */
  JOB_CANCELLED: { readonly zone: string; readonly key: string }
  /** No job of that key waits or runs, and no result is kept. */
  JOB_UNKNOWN: { readonly zone: string; readonly key: string }
  /** Arguments or a result that are larger than a message are not kept any more, though their job is. */
  JOB_DATA_LOST: { readonly zone: string; readonly key: string; readonly what: 'arguments' | 'result' }
  /** A job had not ended in the time of `result()`; it goes on. */
  JOB_TIMEOUT: {
    readonly zone: string
    readonly key: string
    readonly timeoutMs: number
    /** What it waits for, as far as is known. */
    readonly reason?: string | undefined
  }
  /** A reader of changes of jobs or of a store is too far behind them. */
  CHANGES_BEHIND: { readonly of: string; readonly keysMax: number }
  /** A lock was not free in the time of `guard()`. */
  LOCK_TIMEOUT: { readonly lock: string; readonly timeoutMs: number }
  /** The lease of a lock was over before its function had ended: somebody else may hold it. */
  LOCK_LOST: { readonly lock: string; readonly token: number }
}

/** What bounds a value: an option of the connection, the server's setting, or what a job may report. */
type SizeLimit = NonNullable<FleetCodes['FLEET_TOO_LARGE']['limit']>
const SIZE_REMEDIES: Readonly<Record<SizeLimit, string>> = {
  valueBytesMax: 'send less at a time, as a stream does, or raise valueBytesMax on both sides',
  max_payload: 'pass the name of a larger one, or raise max_payload of the server',
  progress: 'report less',
  after: 'let the jobs of after return less, such as names of what they have stored',
}

const SENTENCES: Sentences<FleetCodes> = {
  FLEET_ARGUMENT: argumentSentence,
  FLEET_PEER_MISSING: ({ name, use, reason }) =>
    `${use} needs the package ${name}, which cannot be loaded: ${reason}; run npm install ` +
    (name.startsWith('@nats-io/')
      ? '@nats-io/transport-node @nats-io/jetstream @nats-io/kv @nats-io/obj'
      : name),
  FLEET_CREDENTIALS: ({ option, path, reason, expected }) =>
    `connect() cannot use ${option}${path === undefined ? '' : ` (${path})`}: ${reason}; ` +
    `it must be ${expected}`,
  FLEET_CONNECT: ({ servers, reason, remedy }) => `cannot connect to ${servers}: ${reason}; ${remedy}`,
  FLEET_DENIED: ({ operation, reason, remedy }) =>
    `the server refuses ${operation}: ${reason}; ` +
    (remedy ??
      'check credentials, nkey, user, password and token, ' +
        (/ACCOUNT|CREATE/.test(reason)
          ? 'and make the streams of users as an operator: corespun fleet create users.json'
          : 'and what their user may publish and subscribe to')),
  FLEET_CLOSED: ({ reason }) =>
    `the connection is closed: ${reason}; close a fleet after its last call has ended`,
  FLEET_MESSAGES: ({ use, engine }) =>
    `${use} needs messages between machines, which ${engine} does not have; ` +
    'connect to nats://, or for tests to memory:',
  FLEET_NODE: ({ use, needs, found }) =>
    `${use} needs Node ${needs} or newer, and this is ${found}; update Node, ` +
    'or connect to postgres:// or nats://',
  FLEET_FILE_FOLDER_MISSING: ({ file }) =>
    `the folder of ${file} does not exist; create it before connecting`,
  FLEET_FILE_DENIED: ({ file, what }) =>
    `${file} cannot be written: ${what}; check the permissions of the file and of its folder, ` +
    'in which SQLite makes two more files',
  FLEET_FILE_FOREIGN: ({ file, what }) =>
    `${file} is not a database of SQLite: ${what}; pass another path, or the right file`,
  FLEET_FILE_CORRUPT: ({ file, what }) =>
    `${file} is damaged: ${what}; stop all programs that use it, and replace it by a backup ` +
    'or by what `sqlite3 file .recover` reads of it',
  FLEET_FILE_VERSION: ({ file, what }) =>
    `${file} has version ${what} of the tables, newer than this one; update corespun`,
  FLEET_SCHEMA_VERSION: ({ server, schema, version, known }) =>
    `schema ${JSON.stringify(schema)} of ${server} has version ${version} of the tables, newer than ` +
    `${known} of this one; update corespun, or name another schema`,
  FLEET_FILE_REMOTE: ({ file, what }) =>
    `${file} is on a disk of another machine (${what}), where locks of SQLite do not work; ` +
    'put it on a disk of this one, or connect to postgres:// or nats://',
  FLEET_DISK_FULL: ({ file, what }) =>
    `no space is left for ${file}: ${what}; what it has is kept; free space on its disk`,
  FLEET_TIMEOUT: ({ operation, timeoutMs }) =>
    `${operation} was not confirmed within ${timeoutMs} ms, and may have been done or not; ` +
    'repeat it, if it may be done twice',
  FLEET_ENGINE: ({ operation, reason }) => `the server refused ${operation}: ${reason}`,
  FLEET_MISMATCH: ({ of, option, asked, found }) =>
    `${of} exists with ${option} ${found}, and ${option} ${asked} is asked for; ` +
    `pass the same ${option} in all programs that use it, or change the stream as an operator of the servers`,
  FLEET_CONFLICT: ({ key, revision }) =>
    revision === 0
      ? `${JSON.stringify(key)} exists already; read it, and write with its revision`
      : `${JSON.stringify(key)} has changed since revision ${revision}; read it again, and decide again`,
  FLEET_TOO_LARGE: ({ bytes, valueBytesMax, limit = 'valueBytesMax' }) =>
    `the value has ${bytes} bytes; ${valueBytesMax} are accepted (${limit}); ${SIZE_REMEDIES[limit]}`,
  ZONE_NOWHERE: ({ zone, version, versions }) =>
    versions.length === 0
      ? `no host has the zone ${JSON.stringify(zone)}; start one: corespun host <module> --name ${zone}`
      : `no host has version ${version} of the zone ${JSON.stringify(zone)}; ` +
        `hosts have ${versions.join(', ')}: ` +
        'deploy that version to a host before its callers',
  EXPORT_MISSING: ({ zone, name, exported }) =>
    `the zone ${JSON.stringify(zone)} has no function ${JSON.stringify(name)}; ` +
    `its module exports ${exported.join(', ') || 'none'}`,
  HOST_LOST: ({ zone, host, reason }) =>
    `host ${host} of the zone ${JSON.stringify(zone)} was lost during the call: ${reason}; ` +
    'the function may have run or not: call again only if it may run twice',
  CALLER_LOST: ({ zone, silentMs }) =>
    `the caller of a function of the zone ${JSON.stringify(zone)} has not asked for its call for ` +
    `${silentMs} ms: it has ended, or is cut off; nobody waits for the value`,
  HOST_CREDIT: ({ zone, host, partsMax }) =>
    `host ${host} of the zone ${JSON.stringify(zone)} has sent more than the ${partsMax} parts that its ` +
    'caller takes; check which Corespun it runs, and who may reply as a host of the zone',
  JOB_DEAD: ({ zone, key, failures, hostsLost }) =>
    `the job ${JSON.stringify(key)} of the zone ${JSON.stringify(zone)} has failed for good ` +
    `(attempts failed: ${failures}${hostsLost === 0 ? '' : `, hosts lost: ${hostsLost}`}); ` +
    'see its cause; jobs.again(key) runs it again',
  JOB_CANCELLED: ({ zone, key }) =>
    `the job ${JSON.stringify(key)} of the zone ${JSON.stringify(zone)} was cancelled; ` +
    'jobs.forget(key) makes its key free',
  JOB_UNKNOWN: ({ zone, key }) =>
    `the zone ${JSON.stringify(zone)} has no job ${JSON.stringify(key)}: ` +
    'it was never submitted, or its result is older than its ttlMs',
  JOB_DATA_LOST: ({ zone, key, what }) =>
    `the ${what} of the job ${JSON.stringify(key)} of the zone ${JSON.stringify(zone)} was lost: ` +
    `somebody has removed values of large_${zone} or parts_${zone}; forget the job, and submit it again`,
  JOB_TIMEOUT: ({ zone, key, timeoutMs, reason }) =>
    `the job ${JSON.stringify(key)} of the zone ${JSON.stringify(zone)} ` +
    `has not ended within ${timeoutMs} ms` +
    (reason === undefined
      ? '; it goes on: wait again, or cancel it'
      : `: ${reason}; it waits: correct that, or cancel it`),
  CHANGES_BEHIND: ({ of, keysMax }) =>
    `a reader of changes of ${of} is behind by ${keysMax} keys; read faster, or begin anew`,
  LOCK_TIMEOUT: ({ lock, timeoutMs }) =>
    `the lock ${JSON.stringify(lock)} was not free within ${timeoutMs} ms; wait longer, or do less under it`,
  LOCK_LOST: ({ lock, token }) =>
    `the lease of the lock ${JSON.stringify(lock)} with token ${token} was over ` +
    'before its function had ended: the servers did not confirm that it goes on; ' +
    'refuse writes with a token below the last one',
}

/**
 * What a fleet refused, or how a far call failed: see `code` and `facts`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { FleetError, connect } from 'corespun/fleet'
 *
 * await using fleet = await connect('memory:')
 * const scores = fleet.zone<{ score(text: string): number }>('scores')
 * await assert.rejects(scores.run('score', ['a']), (error) => {
 *   assert.ok(error instanceof FleetError)
 *   assert.equal(error.code, 'ZONE_NOWHERE')
 *   return true
 * })
 * ```
 */
export class FleetError<Code extends keyof FleetCodes = keyof FleetCodes> extends CorespunError<
  FleetCodes,
  Code
> {
  /** @internal */
  static readonly sentences = SENTENCES
}

register(FleetError, { cid: 'corespun.FleetError' })

/** Whether it is one of a fleet, with one of these codes. */
export const hasCode = (error: unknown, ...codes: readonly (keyof FleetCodes)[]): error is FleetError =>
  error instanceof FleetError && codes.includes(error.code)

/** Whether it may be otherwise later: not confirmed, or refused for now, as by a full disk. */
export const mayPass = (error: unknown): error is FleetError =>
  hasCode(error, 'FLEET_TIMEOUT', 'FLEET_ENGINE', 'FLEET_DISK_FULL')

/** What a write by revision resolves to; `undefined` when another one was done before it. */
export const unlessConflict = <Value>(write: Promise<Value>): Promise<Value | undefined> =>
  write.catch((error: unknown) => {
    if (!hasCode(error, 'FLEET_CONFLICT')) throw error
    return undefined
  })

/** Whether a write by revision was done, or another one before it. */
export const isDone = async (write: Promise<unknown>): Promise<boolean> =>
  (await unlessConflict(write.then(() => true))) === true

/** The error for a wrong argument. */
export const wrong = refuser((facts) => new FleetError('FLEET_ARGUMENT', facts))

/** @param asked Absent: what exists. @throws {FleetError} `FLEET_MISMATCH`. */
export function checkSame(
  of: string,
  option: 'replicas' | 'ttlMs',
  asked: number | undefined,
  found: number,
): void {
  if (asked !== undefined && asked !== found)
    throw new FleetError('FLEET_MISMATCH', { of, option, asked, found })
}

/** @throws {FleetError} `FLEET_TOO_LARGE`. */
export function checkSize(bytes: number, valueBytesMax: number, limit?: SizeLimit): void {
  if (bytes > valueBytesMax)
    throw new FleetError('FLEET_TOO_LARGE', { bytes, valueBytesMax, ...(limit && { limit }) })
}
