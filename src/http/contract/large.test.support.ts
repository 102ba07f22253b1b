/**
 * The module of a zone that parses and checks large bodies: schema and reader are here, in each worker.
 *
 * The test imports the schema, and calls the reader by its name.
 */
import { threadId } from 'node:worker_threads'
import { z } from 'zod'
import { jsonReader } from '../index.ts'

export const Order = z.object({ items: z.array(z.object({ id: z.int(), note: z.string() })) })

export const readOrder = jsonReader(Order.transform((order) => ({ ...order, thread: threadId })))
