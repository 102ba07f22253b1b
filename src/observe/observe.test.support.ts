/**
 * A control socket of this process in a folder of the test's own, and raw clients of it.
 * Importing it sets XDG_RUNTIME_DIR, so no test meets the sockets of other processes.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { type Zone, type ZoneOptions, zone } from '../zone/index.ts'
import { type Observation, type ObserveOptions, observe } from './index.ts'

const folder = mkdtempSync(join(tmpdir(), 'look-'))
process.env['XDG_RUNTIME_DIR'] = folder
after(() => rmSync(folder, { recursive: true }))

/** The folder of the sockets. */
export const SOCKETS = join(folder, 'corespun')

/** Run `body` while this process is observed. */
export async function observed(
  options: ObserveOptions,
  body: (observation: Observation) => Promise<void>,
): Promise<void> {
  const observation = await observe(options)
  try {
    await body(observation)
  } finally {
    await observation.close()
  }
}

/** What a client that sends this receives until the connection ends, line by line. */
export function sent(path: string, bytes: string | Buffer, ends = false): Promise<unknown[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(path)
    let text = ''
    socket.setEncoding('utf8').on('data', (part: string) => (text += part))
    socket.on('error', reject)
    socket.on('close', () =>
      resolve(
        text
          .split('\n')
          .filter(Boolean)
          .map((line) => JSON.parse(line) as unknown),
      ),
    )
    if (ends) socket.end(bytes)
    else socket.write(bytes)
  })
}

/** The answer to a request. */
export async function answerOf(path: string, method: string, params: object = {}): Promise<Answer> {
  const lines = await sent(path, `${JSON.stringify({ version: 1, method, params })}\n`)
  return lines.at(-1) as Answer
}

export interface Answer {
  readonly result?: unknown
  readonly error?: { readonly code: string; readonly message: string; readonly facts: object }
}

let made = 0

/** Run `body` with a zone of its own, whose workers have started, and close that. */
export async function inZone(options: ZoneOptions, body: (own: Zone) => Promise<void>): Promise<void> {
  await using own = zone.create(`observed-${++made}`, options)
  await own.ready()
  await body(own)
}
