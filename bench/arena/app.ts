/**
 * The module that every worker of the entry loads; server.ts names it.
 *
 * HttpArena mounts its data at /data.
 */
import { arenaRoutes } from './routes.ts'

export const routes = arenaRoutes(process.env['ARENA_DATA'] ?? '/data')
