/**
 * The command line as a function: what `skein` does, with the process handed in.
 *
 * Nothing inside Skein imports this; programs that embed the command do.
 */
export { command } from './command.ts'
export { CliError, ExitCode, type CliCodes } from './errors.ts'
export type { ItemZone, ItemZoneSettings, OpenZone } from './mapper.ts'
export type { StopSignal, Surroundings } from './run.ts'
export type { ModuleApp as App } from '../http/index.ts'
