/**
 * `corespun fleet config` and `create`: a configuration of nats-server with users, and the streams that they
 * need, from a file of JSON that lists them.
 *
 * `serverConfig()` and `createStreams()` of corespun/fleet do it; what is left here is the file.
 */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { reasonOf } from '../../base/index.ts'
import type { FleetUser } from '../../fleet/index.ts'
import { CliError, ExitCode } from '../errors.ts'
import type { CommandContext } from '../run/run.ts'
import type { CreateWords } from './fleet-arguments.ts'

/**
 * Print the configuration.
 * @param file The path of the file, as written.
 * @throws {CliError} When it cannot be read as JSON.
 * @throws {FleetError} When a user in it is not whole.
 */
export async function printConfig(file: string, context: CommandContext): Promise<number> {
  const { serverConfig } = await import('../../fleet/index.ts')
  context.stdout.write(serverConfig(await usersIn(file, context)))
  return ExitCode.ok
}

/**
 * Make the streams of the users, as an operator of the servers.
 * @throws {CliError} When the file cannot be read as JSON.
 * @throws {FleetError} When a user in it is not whole, and what the servers refuse.
 */
export async function createFor(words: CreateWords, context: CommandContext): Promise<number> {
  const { connect, createStreams } = await import('../../fleet/index.ts')
  const { connection, file, replicas, leaseMs } = words
  const users = await usersIn(file, context)
  const far = await connect(connection.servers, {
    name: 'corespun fleet create',
    replicas,
    ...connection.options,
  })
  try {
    const count = await createStreams(far, users, leaseMs === undefined ? {} : { leaseMs })
    context.stdout.write(`${count} streams for ${users.length} users\n`)
    return ExitCode.ok
  } finally {
    await far.close()
  }
}

async function usersIn(file: string, { folder }: CommandContext): Promise<FleetUser[]> {
  try {
    return JSON.parse(await readFile(resolve(folder, file), 'utf8')) as FleetUser[]
  } catch (cause) {
    throw new CliError('CLI_INPUT_UNREADABLE', { input: file, reason: reasonOf(cause) }, { cause })
  }
}
