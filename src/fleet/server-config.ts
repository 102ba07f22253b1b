/**
 * The users of a nats-server, each with the subjects that its roles need and no others.
 *
 * What a role needs is stated once, here, in the names that the adapter uses itself. Whatever JetStream keeps
 * is a stream, whose part of the API is granted by its name; deleting a stream is granted to nobody.
 */
import { type Kind, flag, optionsOf, text } from '../base/index.ts'
import {
  bucketName,
  inboxOf,
  itemSubject,
  queueStream,
  valueSubject,
  valuesStream,
} from './engine/nats/names.ts'
import { wrong } from './errors.ts'
import { cancelSubject, endSubjects, lettersName, queueName, recordsName } from './jobs/record.ts'
import { limitsSubject } from './limits/exchange.ts'
import { roomsSubject } from './rooms/sending.ts'
import { checkName } from './settings.ts'
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
  /** The stores that it reads and writes. */
  readonly stores?: readonly string[]
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
}

const NAMES: Kind<readonly string[]> = {
  expected: 'an array of names',
  accepts: Array.isArray,
  default: [],
}
const KINDS = {
  name: text<string | undefined>(undefined),
  nkey: text<string | undefined>(undefined),
  password: text<string | undefined>(undefined),
  hosts: NAMES,
  calls: NAMES,
  takes: NAMES,
  submits: NAMES,
  stores: NAMES,
  locks: NAMES,
  rooms: NAMES,
  limits: NAMES,
  largeValues: flag(false),
  observes: flag(false),
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
  if (!Array.isArray(users) || users.length === 0)
    throw wrong('serverConfig(): users', 'an array with at least one user', users)
  const names = new Set<string>()
  const written = users.map((user, index) => {
    const checked = optionsOf(user, KINDS, wrong, 'serverConfig()', `users[${index}]`)
    const { name } = checked
    checkName(`serverConfig(): users[${index}].name`, name)
    if (names.has(name))
      throw wrong(`serverConfig(): users[${index}].name`, 'another one for each user', name)
    names.add(name)
    for (const zone of checked.takes)
      if (!checked.hosts.includes(zone))
        throw wrong(`serverConfig(): users[${index}].takes`, 'zones that hosts has too', zone)
    return userText(name, checked, index)
  })
  const header = '# Made by serverConfig() of corespun/fleet.'
  return `${header}\nauthorization {\n  users: [\n${written.join('')}  ]\n}\n`
}

type Checked = ReturnType<typeof optionsOf<typeof KINDS>>

function userText(name: string, user: Checked, index: number): string {
  const { nkey, password } = user
  const where = `serverConfig(): users[${index}]`
  if ((nkey === undefined) === (password === undefined))
    throw wrong(where, 'a user with nkey or password', nkey === undefined ? 'neither' : 'both')
  if (nkey !== undefined && !PUBLIC_KEY.test(nkey))
    throw wrong(`${where}.nkey`, 'the public key of a user (U…)', `${nkey.slice(0, 1)}…`)
  const identity = nkey === undefined ? `user: "${name}", password: ${quoted(password!)}` : `nkey: ${nkey}`
  const { publish, subscribe } = permissionsOf(name, user, where)
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
function permissionsOf(name: string, user: Checked, where: string): Permissions {
  const granted: Permissions = { publish: new Set(), subscribe: new Set([`${inboxOf(name)}.>`]) }
  const grant = (role: keyof typeof ROLES): void => {
    for (const one of user[role]) {
      checkName(`${where}.${role}`, one)
      ROLES[role](granted, one)
    }
  }
  for (const role of Object.keys(ROLES)) grant(role as keyof typeof ROLES)
  if (user.largeValues) mayUseObjects(granted)
  if (user.observes) mayObserve(granted)
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
    mayUseValues(granted, recordsName(zone), '>')
    mayUseValues(granted, lettersName(zone), '>')
    mayAdd(granted.publish, ...endSubjects(zone))
    mayAdd(granted.subscribe, cancelSubject(zone))
  },
  submits(granted: Permissions, zone: string): void {
    mayUseQueue(granted, queueName(zone), false)
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

/** The operations of the API on a stream; `PURGE` removes what is in it. */
function mayUseStream({ publish }: Permissions, stream: string, ...more: readonly 'PURGE'[]): void {
  const operations = ['CREATE', 'INFO', 'MSG.GET', ...more]
  mayAdd(publish, '$JS.API.INFO', ...operations.map((operation) => `$JS.API.STREAM.${operation}.${stream}`))
}

/** Consumers of a stream, which read all of it. */
function mayConsume({ publish }: Permissions, stream: string): void {
  const operations = ['CREATE', 'DURABLE.CREATE', 'INFO', 'DELETE', 'MSG.NEXT']
  const api = operations.map((operation) => `$JS.API.CONSUMER.${operation}.${stream}.>`)
  mayAdd(publish, ...api, `$JS.ACK.${stream}.>`, `$JS.FC.${stream}.>`)
}

function mayUseQueue(granted: Permissions, name: string, takes: boolean): void {
  mayAdd(granted.publish, itemSubject(name, '*', '*'))
  if (!takes) return mayUseStream(granted, queueStream(name), 'PURGE')
  mayUseStream(granted, queueStream(name))
  mayConsume(granted, queueStream(name))
}

function mayUseValues(granted: Permissions, name: string, key: string): void {
  const stream = valuesStream(name)
  mayUseStream(granted, stream)
  mayConsume(granted, stream)
  mayAdd(granted.publish, valueSubject(name, key))
}

function mayUseObjects(granted: Permissions): void {
  const stream = `OBJ_${bucketName(PAYLOADS)}`
  mayUseStream(granted, stream, 'PURGE')
  mayConsume(granted, stream)
  mayAdd(granted.publish, `$O.${bucketName(PAYLOADS)}.>`)
}

/** What `overview()` asks. */
function mayObserve({ publish }: Permissions): void {
  const operations = ['STREAM.NAMES', 'STREAM.INFO.*', 'STREAM.MSG.GET.*', 'CONSUMER.LIST.*']
  const api = operations.map((operation) => `$JS.API.${operation}`)
  mayAdd(publish, PRESENCE, '$JS.API.INFO', ...api)
}
