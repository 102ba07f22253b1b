/**
 * The routes of Corespun's servers in the http table, as a module that every worker of a zone can load.
 *
 * The constant is one for Corespun: the native core sends it without JavaScript.
 */
import { mkdirSync } from 'node:fs'
import { files } from 'corespun/http'
import { FOLDER, generated, HELLO, streamed, userOf, work } from './responses.ts'

// Table static writes the file; other tables need a folder that exists.
mkdirSync(FOLDER, { recursive: true })

export const routes = {
  '/': (): string => HELLO,
  '/user/:id': (request: { readonly params: { readonly id: string } }): object => userOf(request.params.id),
  '/echo': async (request: Request): Promise<object> => (await request.json()) as object,
  '/constant': HELLO,
  '/work': (): string => work(),
  '/generated': (): AsyncGenerator<Uint8Array> => generated(),
  '/streamed': (): ReadableStream<Uint8Array> => streamed(),
  '/*': files(FOLDER),
}
