/**
 * The users of a nats-server, each with the subjects that its roles need and no others.
 *
 * What a role needs is stated once, here, in the names that the adapter uses itself. Whatever JetStream keeps
 * is a stream, whose part of the API is granted by its name. Making streams and consumers is granted to
 * `creates` alone (create.ts), since a server permits the name and not the content: a stream may read any
 * other one, and a consumer may send to any subject. Deleting is granted to nobody.
 */
import { type Kind, flag, optionsOf, text } from '../base/index.ts'
import { RANKS } from './engine/engine.ts'
import {
  inboxOf,
  itemSubjects,
  objectSubject,
  objectsStream,
  queueStream,
  takersName,
  valueSubject,
  valuesStream,
} from './engine/nats/names.ts'
import { wrong } from './errors.ts'
import {
  anyEndSubject,
  cancelSubject,
  endSubjects,
  largeName,
  lettersName,
  limitsName,
  partsName,
  queueName,
  recordsName,
} from './jobs/record.ts'
import { limitsSubject } from './limits/exchange.ts'
import { roomsSubject } from './rooms/sending.ts'
import { checkName, storeOptions } from './settings.ts'
import { LOCKS, freeSubject } from './state/held.ts'
import { storeName } from './state/store.ts'
import { PAYLOADS, PRESENCE, cardSubject, hostSubject, surveySubject } from './wire.ts'

/** A user of the servers, and what it may do. */
export interface FleetUser {
  /** 1 to 64 letters, digits, _ and -: `connect(servers, { inbox: name })`. */
  readonly name: string
  /** The public key of its nkey, `U…`; or `password`. */
  readonly nkey?: string | undefined
  /** Its password, best as a bcrypt hash; `connect(servers, { user: name, password, inbox: name })`. */
  readonly password?: string | undefined
  /** The zones that it hosts. */
  readonly hosts?: readonly string[]
  /** The zones that it calls. */
  readonly calls?: readonly string[]
  /** The zones whose jobs it runs; it hosts them too. */
  readonly takes?: readonly string[]
  /** The zones whose jobs it submits, and whose results it reads. */
  readonly submits?: readonly string[]
  /** The stores that it reads and writes; with the `ttlMs` of those whose values end. */
  readonly stores?: readonly (string | FleetUserStore)[]
  /** The locks that it takes. */
  readonly locks?: readonly string[]
  /** The rooms that its servers share, and that it publishes to. */
  readonly rooms?: readonly string[]
  /** The rate limits that its servers share. */
  readonly limits?: readonly string[]
  /** Whether arguments and values of its calls may be larger than a message. Default false. */
  readonly largeValues?: boolean
  /** Whether it may see all hosts and queues, and read waiting jobs: `corespun fleet`. Default false. */
  readonly observes?: boolean
  /**
   * Whether it may make streams and consumers, as `createStreams` and `corespun fleet create` do: so it may
   * read and write whatever the account has. Default false.
   */
  readonly creates?: boolean
}

/** A store of {@link FleetUser} whose values end. */
export interface FleetUserStore {
  /** As of `fleet.store(name)`. */
  readonly name: string
  /** As of `fleet.store(name, { ttlMs })`. */
  readonly ttlMs?: number
}

const NAMES: Kind<readonly string[]> = {
  expected: 'an array of names',
  accepts: Array.isArray,
  default: [],
}
const STORES: Kind<readonly (string | FleetUserStore)[]> = { ...NAMES, default: [] }
const KINDS = {
  name: text<string | undefined>(undefined),
  nkey: text<string | undefined>(undefined),
  password: text<string | undefined>(undefined),
  hosts: NAMES,
  calls: NAMES,
  takes: NAMES,
  submits: NAMES,
  stores: STORES,
  locks: NAMES,
  rooms: NAMES,
  limits: NAMES,
  largeValues: flag(false),
  observes: flag(false),
  creates: flag(false),
}
const PUBLIC_KEY = /^U[A-Z2-7]{55}$/

/** Subjects. */
interface Permissions {
  readonly publish: Set<string>
  readonly subscribe: Set<string>
}

/**
 * A configuration of nats-server with these users, to be included in another one or to be all of it. It has
 * `authorization` alone: addresses, TLS, JetStream and clusters are those of the server.
 * @throws {FleetError} `FLEET_ARGUMENT`.
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { serverConfig } from 'corespun/fleet'
 *
 * const config = serverConfig([
 *   { name: 'host', password: 'h', hosts: ['score'] },
 *   { name: 'caller', password: 'c', calls: ['score'], stores: ['prices'] },
 * ])
 * assert.match(config, /user: "caller"/)
 * ```
 */
export function serverConfig(users: readonly FleetUser[]): string {
  const written = checkedUsers('serverConfig()', users).map(userText)
  const header = '# Made by serverConfig() of corespun/fleet.'
  return `${header}\nauthorization {\n  users: [\n${written.join('')}  ]\n}\n`
}

/** A user, complete. */
export type CheckedUser = Omit<ReturnType<typeof optionsOf<typeof KINDS>>, 'name' | 'stores'> & {
  readonly name: string
  readonly stores: readonly { readonly name: string; readonly ttlMs: number }[]
}

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export function checkedUsers(call: string, users: unknown): CheckedUser[] {
  if (!Array.isArray(users) || users.length === 0)
    throw wrong(`${call}: users`, 'an array with at least one user', users)
  const names = new Set<string>()
  return users.map((user: unknown, index) => {
    const where = `${call}: users[${index}]`
    const checked = optionsOf(user, KINDS, wrong, call, `users[${index}]`)
    const { name, nkey, password } = checked
    checkName(`${where}.name`, name)
    if (names.has(name)) throw wrong(`${where}.name`, 'another one for each user', name)
    names.add(name)
    for (const zone of checked.takes)
      if (!checked.hosts.includes(zone)) throw wrong(`${where}.takes`, 'zones that hosts has too', zone)
    const stores = checked.stores.map((store) => {
      const { name: of, ttlMs } = typeof store === 'string' ? { name: store } : Object(store)
      return { name: of as string, ttlMs: storeOptions({ ttlMs }).ttlMs }
    })
    for (const [role, all] of Object.entries({ ...checked, stores: stores.map(({ name: of }) => of) }))
      if (Array.isArray(all)) for (const one of all as unknown[]) checkName(`${where}.${role}`, one)
    if ((nkey === undefined) === (password === undefined))
      throw wrong(where, 'a user with nkey or password', nkey === undefined ? 'neither' : 'both')
    if (nkey !== undefined && !PUBLIC_KEY.test(nkey))
      throw wrong(`${where}.nkey`, 'the public key of a user (U…)', `${nkey.slice(0, 1)}…`)
    return { ...checked, name, stores }
  })
}

function userText(user: CheckedUser): string {
  const { name, nkey, password } = user
  const identity = nkey === undefined ? `user: "${name}", password: ${quoted(password!)}` : `nkey: ${nkey}`
  const { publish, subscribe } = permissionsOf(user)
  const list = (subjects: ReadonlySet<string>): string =>
    [...subjects].map((subject) => `\n          ${quoted(subject)}`).join('')
  return `    {
      # ${name}
      ${identity}
      permissions: {
        publish: [${list(publish)}
        ]
        subscribe: [${list(subscribe)}
        ]
      }
    }
`
}

/** As the server reads a string. */
const quoted = (value: string): string => JSON.stringify(value)

/** Each role adds its subjects. */
function permissionsOf(user: CheckedUser): Permissions {
  const { name, stores, largeValues, observes, creates } = user
  const granted: Permissions = { publish: new Set(), subscribe: new Set([`${inboxOf(name)}.>`]) }
  for (const role of Object.keys(ROLES) as (keyof typeof ROLES)[])
    for (const one of role === 'stores' ? stores.map((store) => store.name) : user[role])
      ROLES[role](granted, one)
  if (largeValues) mayUseObjects(granted)
  if (observes) mayObserve(granted)
  if (creates) mayCreate(granted)
  // A list without subjects permits all.
  if (granted.publish.size === 0) granted.publish.add(`${inboxOf(name)}.none`)
  return granted
}

function mayAdd(set: Set<string>, ...subjects: readonly string[]): void {
  for (const subject of subjects) set.add(subject)
}

const ROLES = {
  hosts({ publish, subscribe }: Permissions, zone: string): void {
    // Replies go to any caller.
    mayAdd(publish, inboxOf('>'), cardSubject(zone))
    mayAdd(subscribe, hostSubject(zone, '*'), surveySubject(zone), surveySubject(zone, '*'), PRESENCE)
  },
  calls({ publish, subscribe }: Permissions, zone: string): void {
    mayAdd(publish, hostSubject(zone, '*'), surveySubject(zone), surveySubject(zone, '*'))
    mayAdd(subscribe, cardSubject(zone))
  },
  takes(granted: Permissions, zone: string): void {
    mayUseQueue(granted, queueName(zone), true)
    for (const large of [largeName(zone), partsName(zone)]) mayUseValues(granted, large, '>')
    mayUseValues(granted, recordsName(zone), '>')
    mayUseValues(granted, lettersName(zone), '>')
    mayUseValues(granted, limitsName(zone), '>')
    mayAdd(granted.publish, ...endSubjects(zone))
    mayAdd(granted.subscribe, cancelSubject(zone), anyEndSubject(zone))
  },
  submits(granted: Permissions, zone: string): void {
    mayUseQueue(granted, queueName(zone), false)
    for (const large of [largeName(zone), partsName(zone)]) mayUseValues(granted, large, '>')
    mayUseValues(granted, recordsName(zone), '>')
    mayUseValues(granted, lettersName(zone), '>')
    mayAdd(granted.publish, cancelSubject(zone), ...endSubjects(zone))
    mayAdd(granted.subscribe, ...endSubjects(zone))
  },
  stores(granted: Permissions, name: string): void {
    mayUseValues(granted, storeName(name), '>')
  },
  locks(granted: Permissions, name: string): void {
    mayUseValues(granted, LOCKS, name)
    mayAdd(granted.publish, freeSubject(name))
    mayAdd(granted.subscribe, freeSubject(name))
  },
  rooms({ publish, subscribe }: Permissions, name: string): void {
    mayAdd(publish, roomsSubject(name))
    mayAdd(subscribe, roomsSubject(name))
  },
  limits({ publish, subscribe }: Permissions, name: string): void {
    mayAdd(publish, limitsSubject(name))
    mayAdd(subscribe, limitsSubject(name))
  },
} satisfies Record<string, (granted: Permissions, name: string) => void>

/** What is read of a stream that exists; `PURGE` removes what is in it. */
function mayUseStream({ publish }: Permissions, stream: string, ...more: readonly 'PURGE'[]): void {
  const operations = ['INFO', 'MSG.GET', ...more]
  mayAdd(publish, '$JS.API.INFO', ...operations.map((operation) => `$JS.API.STREAM.${operation}.${stream}`))
}

/** Takes by the consumers that exist. */
function mayTake({ publish }: Permissions, stream: string): void {
  const api = RANKS.flatMap((rank) =>
    ['INFO', 'MSG.NEXT'].map((operation) => `$JS.API.CONSUMER.${operation}.${stream}.${takersName(rank)}`),
  )
  mayAdd(publish, ...api, `$JS.ACK.${stream}.>`)
}

function mayUseQueue(granted: Permissions, name: string, takes: boolean): void {
  mayAdd(granted.publish, ...itemSubjects(name))
  // Who takes replaces an item that is to be lent at once.
  mayUseStream(granted, queueStream(name), 'PURGE')
  if (takes) mayTake(granted, queueStream(name))
}

/** @param key Those that are written. */
function mayUseValues({ publish, subscribe }: Permissions, name: string, key: string): void {
  mayUseStream({ publish, subscribe }, valuesStream(name))
  mayAdd(publish, valueSubject(name, key))
  // That a value changes; it is read by its number.
  mayAdd(subscribe, valueSubject(name, key))
}

function mayUseObjects(granted: Permissions): void {
  mayUseStream(granted, objectsStream(PAYLOADS), 'PURGE')
  mayAdd(granted.publish, objectSubject(PAYLOADS, '>'))
}

/** What `overview()` asks. */
function mayObserve({ publish }: Permissions): void {
  const operations = ['STREAM.NAMES', 'STREAM.INFO.*', 'STREAM.MSG.GET.*', 'CONSUMER.LIST.*']
  const api = operations.map((operation) => `$JS.API.${operation}`)
  mayAdd(publish, PRESENCE, '$JS.API.INFO', ...api)
}

/** What `createStreams()` asks. Parts of names cannot be permitted, so it is all of them. */
function mayCreate({ publish }: Permissions): void {
  const streams = ['INFO', 'CREATE', 'UPDATE', 'PURGE'].map((operation) => `STREAM.${operation}.*`)
  const consumers = ['INFO', 'CREATE', 'DURABLE.CREATE'].map((operation) => `CONSUMER.${operation}.>`)
  mayAdd(publish, ...['INFO', ...streams, ...consumers].map((operation) => `$JS.API.${operation}`))
}
