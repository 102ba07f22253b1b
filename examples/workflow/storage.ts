/**
 * The storage of Vercel's Workflow SDK in a file of SQLite: an event is recorded, and the run, step, hook or
 * wait that it changes is, in one transaction.
 *
 * So of two processes that report the same the second is refused, which the SDK expects, and no lock
 * outlives a process. Values are frames of corespun/transport: dates and bytes stay what they are.
 *
 * Over 400 lines: one protocol, whose events share the run, its rows and their transaction.
 */
import type { DatabaseSync } from 'node:sqlite'
import {
  EntityConflictError,
  HookNotFoundError,
  RunExpiredError,
  RunNotSupportedError,
  TooEarlyError,
  WorkflowRunNotFoundError,
  WorkflowWorldError,
} from '@workflow/errors'
import * as world from '@workflow/world'
import { decode, encode } from 'corespun/transport'
import { monotonicFactory } from 'ulid'
import { transaction } from './transaction.ts'

type Event = world.Event
type Fields = Record<string, any>
interface Page {
  readonly limit?: number
  readonly cursor?: string
  readonly sortOrder?: 'asc' | 'desc'
}

const newId = monotonicFactory()
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS workflow_events (seq INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL,
    id TEXT NOT NULL UNIQUE, correlation TEXT, bytes BLOB NOT NULL);
  CREATE INDEX IF NOT EXISTS workflow_events_run ON workflow_events (run, seq);
  CREATE INDEX IF NOT EXISTS workflow_events_correlation ON workflow_events (correlation, seq);
  CREATE TABLE IF NOT EXISTS workflow_entities (seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL,
    run TEXT NOT NULL, id TEXT NOT NULL, token TEXT, bytes BLOB NOT NULL, UNIQUE (kind, run, id));
  CREATE INDEX IF NOT EXISTS workflow_tokens ON workflow_entities (token) WHERE token IS NOT NULL;
`
const ENDED: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])
const LIMIT = 1000
const NO_DATA = { input: undefined, output: undefined }

export function createStorage(db: DatabaseSync): world.Storage {
  db.exec(SCHEMA)
  const kept = new Kept(db)
  const stripped = (event: Event, none: boolean): Event =>
    none ? world.stripEventDataRefs(event, 'none') : event
  const entities = (kind: string, where: Fields, params: Fields = {}, cut: Fields = NO_DATA): any => {
    const page = kept.page('workflow_entities', { kind, ...where }, params['pagination'])
    if (params['resolveData'] !== 'none') return page
    return { ...page, data: page.data.map((each: Fields) => ({ ...each, ...cut })) }
  }
  const found = (kind: string, run: string, id: string, params: Fields = {}): any => {
    const one = kept.get(kind, run, id)
    if (one === undefined && kind === 'run') throw new WorkflowRunNotFoundError(id)
    if (one === undefined) throw new WorkflowWorldError(`${kind} "${id}" not found`)
    return params['resolveData'] === 'none' ? { ...one, ...NO_DATA } : one
  }
  const events = (where: Fields, params: Fields): any => {
    const page = kept.page('workflow_events', where, params['pagination'])
    const none = params['resolveData'] === 'none'
    return { ...page, data: page.data.map((event: Event) => stripped(event, none)) }
  }
  return {
    runs: {
      get: (async (id: string, params?: Fields) => found('run', id, id, params)) as never,
      list: (async (params: Fields = {}) => {
        const { pagination, workflowName, status } = params
        const page = entities('run', {}, { ...params, pagination: { sortOrder: 'desc', ...pagination } })
        const isAsked = (run: Fields): boolean =>
          (workflowName === undefined || run['workflowName'] === workflowName) &&
          (status === undefined || run['status'] === status)
        return { ...page, data: page.data.filter(isAsked) }
      }) as never,
      experimentalSetAttributes: async (id, changes, options) =>
        kept.transaction(() => {
          const run = found('run', id, id)
          const existingKeys = Object.keys(run.attributes)
          world.validateAttributeChanges(changes, { existingKeys, ...options })
          const attributes = world.applyAttributeChanges(run.attributes, changes)
          kept.put('run', id, id, { ...run, attributes, updatedAt: new Date() })
          return { attributes }
        }),
    },
    steps: {
      get: (async (run: string, id: string, params?: Fields) => found('step', run, id, params)) as never,
      list: (async (params: Fields) => entities('step', { run: params['runId'] }, params)) as never,
    },
    events: {
      create: (async (id: string | null, data: Fields, params: Fields = {}) => {
        const none = params['resolveData'] === 'none'
        const { event, ...result } = kept.transaction(() => new Change(kept, id, data, params).made())
        return { ...result, ...(event !== undefined && { event: stripped(event as Event, none) }) }
      }) as never,
      get: async (run, id, params) => {
        const { data } = kept.page('workflow_events', { run, id })
        if (data.length === 0) throw new WorkflowWorldError(`event "${id}" not found`)
        return stripped(data[0], params?.resolveData === 'none')
      },
      list: async (params) => events({ run: params.runId }, params),
      listByCorrelationId: async (params) => events({ correlation: params.correlationId }, params),
    },
    hooks: hooksOf(kept, entities),
  }
}

function hooksOf(kept: Kept, list: (kind: string, where: Fields, params: Fields, cut: Fields) => any): any {
  const hookBy = (column: 'id' | 'token', value: string): any => {
    const { data } = kept.page('workflow_entities', { kind: 'hook', [column]: value })
    if (data.length === 0) throw new HookNotFoundError(value)
    return data[0]
  }
  return {
    get: async (id: string) => hookBy('id', id),
    getByToken: async (token: string) => hookBy('token', token),
    list: async (params: Fields) => {
      const where: Fields = params['runId'] === undefined ? {} : { run: params['runId'] }
      return list('hook', where, params, { metadata: undefined })
    },
  }
}

/** What is in the file. */
class Kept {
  readonly #db: DatabaseSync

  constructor(db: DatabaseSync) {
    this.#db = db
  }

  transaction<Value>(work: () => Value): Value {
    return transaction(this.#db, work)
  }

  get(kind: string, run: string, id: string): any {
    const sql = 'SELECT bytes FROM workflow_entities WHERE kind = ? AND run = ? AND id = ?'
    const row = this.#db.prepare(sql).get(kind, run, id)
    return row && decode(row['bytes'] as Uint8Array)
  }

  put(kind: string, run: string, id: string, entity: Fields): Fields {
    const sql =
      'INSERT INTO workflow_entities (kind, run, id, token, bytes) VALUES (?, ?, ?, ?, ?) ' +
      'ON CONFLICT (kind, run, id) DO UPDATE SET bytes = excluded.bytes'
    const token = kind === 'hook' ? entity['token'] : null
    this.#db.prepare(sql).run(kind, run, id, token, encode(entity))
    return entity
  }

  remove(kind: string, run: string, id?: string): void {
    const and = id === undefined ? '' : ' AND id = ?'
    const sql = `DELETE FROM workflow_entities WHERE kind = ? AND run = ?${and}`
    this.#db.prepare(sql).run(kind, run, ...(id === undefined ? [] : [id]))
  }

  append(event: Fields): void {
    const sql = 'INSERT INTO workflow_events (run, id, correlation, bytes) VALUES (?, ?, ?, ?)'
    const { runId, eventId, correlationId = null } = event
    this.#db.prepare(sql).run(runId, eventId, correlationId, encode(event))
  }

  /** Rows in the order in which they were added; a cursor is the number of a row. */
  page(table: string, where: Fields, { limit = LIMIT, cursor, sortOrder = 'asc' }: Page = {}): any {
    const isUp = sortOrder === 'asc'
    const terms = Object.keys(where).map((column) => `${column} = ?`)
    if (cursor !== undefined) terms.push(`seq ${isUp ? '>' : '<'} ?`)
    const rest = `WHERE ${terms.join(' AND ')} ORDER BY seq ${isUp ? 'ASC' : 'DESC'} LIMIT ?`
    const sql = `SELECT seq, bytes FROM ${table} ${rest}`
    const values = [...Object.values(where), ...(cursor === undefined ? [] : [Number(cursor)])]
    const rows = this.#db.prepare(sql).all(...values, limit + 1)
    const shown = rows.slice(0, limit)
    const last = shown.at(-1)?.['seq']
    return {
      data: shown.map(({ bytes }) => decode(bytes as Uint8Array)),
      cursor: last === undefined ? (cursor ?? null) : String(last),
      hasMore: rows.length > limit,
    }
  }
}

/** One event, and what it changes; within a transaction. */
class Change {
  readonly #kept: Kept
  readonly #data: any
  readonly #params: Fields
  readonly #run: string
  readonly #now = new Date()
  readonly #result: Fields = {}
  #event: Fields

  constructor(kept: Kept, id: string | null, data: Fields, params: Fields) {
    this.#kept = kept
    this.#data = data
    this.#params = params
    if (!id && data['eventType'] !== 'run_created') throw new WorkflowWorldError('runId is required')
    this.#run = id || `wrun_${newId()}`
    this.#event = this.#eventOf(data)
  }

  #eventOf(data: Fields): Fields {
    const made = { runId: this.#run, eventId: `evnt_${newId()}`, createdAt: this.#now }
    return { ...data, ...made, specVersion: data['specVersion'] ?? world.SPEC_VERSION_CURRENT }
  }

  made(): Fields {
    const { eventType: type, eventData: about = {} } = this.#data
    const run = this.#checkedRun(type, about)
    if (type === 'run_started' && run?.status === 'running') return { run }
    if (type.startsWith('run_')) this.#changeRun(type, about, run)
    else if (type === 'attr_set') this.#setAttributes(about, run)
    else if (type.startsWith('step_')) this.#changeStep(type, about, run)
    else if (type.startsWith('hook_')) this.#changeHook(type, about)
    else this.#changeWait(type, about)
    this.#kept.append(this.#event)
    return { event: this.#event, ...this.#result, ...this.#events(type) }
  }

  /** The run before the event; one that is only started now is created. */
  #checkedRun(type: string, about: Fields): any {
    let run = this.#kept.get('run', this.#run, this.#run)
    if (type === 'run_created') {
      if (run !== undefined) throw new EntityConflictError(`run "${this.#run}" already exists`)
      return undefined
    }
    if (run === undefined && type === 'run_started' && about['input'] !== undefined) {
      run = this.#newRun(about)
      this.#kept.append(this.#eventOf({ ...this.#data, eventType: 'run_created' }))
    }
    if (run === undefined) throw new WorkflowRunNotFoundError(this.#run)
    if (world.requiresNewerWorld(run.specVersion))
      throw new RunNotSupportedError(run.specVersion, world.SPEC_VERSION_CURRENT)
    if (!ENDED.has(run.status)) return run
    const state = `run in terminal state "${run.status}"`
    if (type === 'run_started') throw new RunExpiredError(state)
    const isAgain = type === 'run_cancelled' && run.status === 'cancelled'
    const isNew = world.isChildEntityCreationEvent(this.#data)
    if ((type.startsWith('run_') && !isAgain) || type === 'attr_set' || isNew)
      throw new EntityConflictError(state)
    return run
  }

  #newRun(about: Fields): Fields {
    const { deploymentId, workflowName, executionContext, input, attributes = {} } = about
    const allowReservedAttributes = about['allowReservedAttributes'] === true
    const changes: any = Object.entries(attributes).map(([key, value]) => ({ key, value }))
    world.validateAttributeChanges(changes, { allowReservedAttributes })
    const { specVersion } = this.#event
    const times = { createdAt: this.#now, updatedAt: this.#now, startedAt: undefined, completedAt: undefined }
    const facts = { deploymentId, workflowName, specVersion, executionContext, input, attributes }
    const run = {
      runId: this.#run,
      status: 'pending',
      ...facts,
      ...times,
      output: undefined,
      error: undefined,
    }
    return this.#kept.put('run', this.#run, this.#run, run)
  }

  #changeRun(type: string, about: Fields, run: any): void {
    if (type === 'run_created') {
      this.#result['run'] = this.#newRun(about)
      return
    }
    const updatedAt = this.#now
    if (ENDED.has(run.status)) this.#result['run'] = run
    else if (type === 'run_started') {
      const { eventData: _, ...event } = this.#event
      this.#event = event
      this.#putRun({ ...run, status: 'running', startedAt: run.startedAt ?? this.#now, updatedAt })
    } else {
      const { output, error, errorCode } = about
      const end = { output, error, ...(errorCode !== undefined && { errorCode }), completedAt: this.#now }
      this.#putRun({ ...run, status: type.slice('run_'.length), ...end, updatedAt })
      for (const kind of ['hook', 'wait']) this.#kept.remove(kind, this.#run)
    }
  }

  #putRun(run: Fields): void {
    this.#result['run'] = this.#kept.put('run', this.#run, this.#run, run)
  }

  #setAttributes({ changes, writer, allowReservedAttributes }: Fields, run: any): void {
    const existingKeys = Object.keys(run.attributes)
    const isReserved = allowReservedAttributes === true
    world.validateAttributeChanges(changes, { existingKeys, allowReservedAttributes: isReserved })
    const { correlationId } = this.#data
    if (correlationId !== undefined && writer?.type === 'workflow') this.#claim('attribute', correlationId)
    const attributes = world.applyAttributeChanges(run.attributes, changes)
    this.#putRun({ ...run, attributes, updatedAt: this.#now })
  }

  /** @throws {EntityConflictError} The second time. */
  #claim(kind: string, id: string): void {
    if (this.#kept.get(kind, this.#run, id) !== undefined)
      throw new EntityConflictError(`${kind} "${id}" was reported before`)
    this.#kept.put(kind, this.#run, id, {})
  }

  #changeStep(type: string, about: Fields, run: any): void {
    const { correlationId: id } = this.#data
    const isLazy = type === 'step_started' && world.isChildEntityCreationEvent(this.#data)
    let step = this.#kept.get('step', this.#run, id)
    if (type === 'step_created' || isLazy) {
      if (step !== undefined) throw new EntityConflictError(`step "${id}" already created`)
      step = this.#newStep(id, about)
    }
    if (type === 'step_created') return
    if (step === undefined) throw new WorkflowWorldError(`step "${id}" not found`)
    if (ENDED.has(step.status)) throw new EntityConflictError(`step in terminal state "${step.status}"`)
    if (ENDED.has(run.status) && step.status !== 'running')
      throw new RunExpiredError(`run in terminal state "${run.status}"`)
    if (isLazy) {
      const { input: _, ...eventData } = about
      this.#kept.append(this.#eventOf({ ...this.#data, eventType: 'step_created', eventData: about }))
      this.#event = { ...this.#eventOf(this.#data), eventData }
      this.#result['stepCreated'] = true
    }
    this.#putStep({ ...step, ...this.#stepChange(type, about, step), updatedAt: this.#now })
  }

  #newStep(id: string, { stepName, input }: Fields): Fields {
    const times = { startedAt: undefined, completedAt: undefined, createdAt: this.#now, updatedAt: this.#now }
    const facts = { runId: this.#run, stepId: id, stepName, input, specVersion: this.#event['specVersion'] }
    return this.#putStep({
      ...facts,
      status: 'pending',
      attempt: 0,
      output: undefined,
      error: undefined,
      ...times,
    })
  }

  #putStep(step: Fields): Fields {
    return (this.#result['step'] = this.#kept.put('step', this.#run, step['stepId'], step))
  }

  #stepChange(type: string, { result, error, retryAfter }: Fields, step: any): Fields {
    if (type === 'step_completed') return { status: 'completed', output: result, completedAt: this.#now }
    if (type === 'step_failed') return { status: 'failed', error, completedAt: this.#now }
    if (type === 'step_retrying') return { status: 'pending', error, retryAfter }
    const earlyMs = step.retryAfter === undefined ? 0 : step.retryAfter.getTime() - this.#now.getTime()
    if (earlyMs > 0)
      throw new TooEarlyError(`step "${step.stepId}" is not due`, { retryAfter: Math.ceil(earlyMs / 1000) })
    const startedAt = step.startedAt ?? this.#now
    return { status: 'running', startedAt, attempt: step.attempt + 1, retryAfter: undefined }
  }

  #changeHook(type: string, about: Fields): void {
    const { correlationId: id } = this.#data
    const hook = this.#kept.get('hook', this.#run, id)
    if (type !== 'hook_created') {
      if (hook === undefined) throw new HookNotFoundError(id)
      if (type === 'hook_disposed') this.#kept.remove('hook', this.#run, id)
      return
    }
    if (hook !== undefined) throw new EntityConflictError(`hook "${id}" already created`)
    const { token, metadata, isWebhook = false, isSystem = false } = about
    const [other] = this.#kept.page('workflow_entities', { kind: 'hook', token }).data
    if (other !== undefined) {
      const eventData = { token, conflictingRunId: other.runId }
      this.#event = { ...this.#event, eventType: 'hook_conflict', eventData }
      return
    }
    const facts = { runId: this.#run, hookId: id, token, metadata, isWebhook, isSystem }
    const owner = { ownerId: 'local-owner', projectId: 'local-project', environment: 'local' }
    const { createdAt, specVersion } = this.#event
    const made = { ...facts, ...owner, createdAt, specVersion }
    this.#result['hook'] = this.#kept.put('hook', this.#run, id, made)
  }

  #changeWait(type: string, { resumeAt }: Fields): void {
    const { correlationId: id } = this.#data
    const wait = this.#kept.get('wait', this.#run, id)
    const updatedAt = this.#now
    if (type === 'wait_created') {
      if (wait !== undefined) throw new EntityConflictError(`wait "${id}" already exists`)
      const facts = { waitId: `${this.#run}-${id}`, runId: this.#run, status: 'waiting', resumeAt }
      const times = { completedAt: undefined, createdAt: this.#now, updatedAt }
      const made = { ...facts, ...times, specVersion: this.#event['specVersion'] }
      this.#result['wait'] = this.#kept.put('wait', this.#run, id, made)
    } else {
      if (wait === undefined) throw new WorkflowWorldError(`wait "${id}" not found`)
      if (wait.status === 'completed') throw new EntityConflictError(`wait "${id}" already completed`)
      const made = { ...wait, status: 'completed', completedAt: this.#now, updatedAt }
      this.#result['wait'] = this.#kept.put('wait', this.#run, id, made)
    }
  }

  /** All events of a run that begins, and those behind a cursor for who reports the end of a step. */
  #events(type: string): Fields {
    const { sinceCursor: cursor } = this.#params
    const isEnd = (type === 'step_completed' || type === 'step_failed') && typeof cursor === 'string'
    if (type !== 'run_started' && !isEnd) return {}
    const { data, ...rest } = this.#kept.page('workflow_events', { run: this.#run }, isEnd ? { cursor } : {})
    return { events: data, ...rest }
  }
}
