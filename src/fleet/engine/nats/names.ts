/**
 * What JetStream calls queues, values and objects, and where messages of them go.
 *
 * The adapter uses these names, and permissions are made of them (server-config.ts).
 */
import { RANKS } from '../engine.ts'

/** The stream of a queue. */
export const queueStream = (name: string): string => `corespun_queue_${name}`
/** The name of a queue, of its stream. */
export const queueOfStream = (stream: string): string => stream.slice(queueStream('').length)
/** The stream of values. */
export const valuesStream = (name: string): string => `KV_${bucketName(name)}`
/** The items of a queue, of a rank and with an id; `*` means any. */
export const itemSubject = (name: string, rank: number | '*', id: string): string =>
  `corespun.queue.${name}.${rank}.${id}`
/** The items of a queue that are ever taken: those of the ranks that there are. */
export const itemSubjects = (name: string): string[] => RANKS.map((rank) => itemSubject(name, rank, '*'))
/** A store of values, or of objects. */
export const bucketName = (name: string): string => `corespun_${name}`
/** A value by its key, as a part of a subject. */
export const valueSubject = (name: string, key: string): string => `$KV.${bucketName(name)}.${key}`
/** The stream of objects. */
export const objectsStream = (name: string): string => `OBJ_${bucketName(name)}`
/** Parts of objects. */
export const objectSubject = (name: string, part: string): string => `$O.${bucketName(name)}.${part}`
/** The consumer of a queue for one rank. */
export const takersName = (rank: number): string => `takers_${rank}`
/** What subjects of replies begin with. */
export const inboxOf = (user: string | undefined): string =>
  user === undefined ? '_INBOX' : `_INBOX.${user}`
