/**
 * `node map-piscina.js <folder>`: every file through a piscina pool, results as NDJSON in the order of names.
 *
 * All tasks are submitted at once, which was its fastest way; `concurrentTasksPerWorker` did not help
 * synchronous work.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Piscina } from 'piscina'

const folder = process.argv[2]
const pool = new Piscina({ filename: new URL('./parse.js', import.meta.url).href })
const names = readdirSync(folder).sort()
const results = await Promise.all(names.map((name) => pool.run(join(folder, name))))
process.stdout.write(results.map((result) => `${JSON.stringify(result)}\n`).join(''))
await pool.close()
