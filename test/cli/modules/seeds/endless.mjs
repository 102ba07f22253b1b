/**
 * A program that never ends, for Ctrl-C and --timeout.
 *
 * It writes its id to the file that BEGUN names.
 */
import { writeFileSync } from 'node:fs'

writeFileSync(process.env.BEGUN, String(process.pid))
setInterval(() => {}, 1000)
