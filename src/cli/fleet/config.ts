/**
 * `corespun fleet config`: a configuration of nats-server with users, from a file of JSON that lists them.
 *
 * `serverConfig()` of corespun/fleet makes it; what is left here is the file.
 */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { reasonOf } from '../../base/index.ts'
import type { FleetUser } from '../../fleet/index.ts'
import { CliError, ExitCode } from '../errors.ts'
import type { CommandContext } from '../run/run.ts'

/**
 * Print the configuration.
 * @param file The path of the file, as written.
 * @throws {CliError} When it cannot be read as JSON.
 * @throws {FleetError} When a user in it is not whole.
 */
export async function printConfig(file: string, context: CommandContext): Promise<number> {
  const { serverConfig } = await import('../../fleet/index.ts')
  let users: FleetUser[]
  try {
    users = JSON.parse(await readFile(resolve(context.folder, file), 'utf8')) as FleetUser[]
  } catch (cause) {
    throw new CliError('CLI_INPUT_UNREADABLE', { input: file, reason: reasonOf(cause) }, { cause })
  }
  context.stdout.write(serverConfig(users))
  return ExitCode.ok
}
