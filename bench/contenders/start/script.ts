/**
 * `node script.js <way> <folder>`: the length of each file of a folder, a line each, in the order of names.
 *
 * `one thread` is a plain loop, `piscina` sends each file to a pool. Corespun's way is `corespun run`.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import size from './size.ts'

const [way, folder] = process.argv.slice(2) as [string, string]
const paths = readdirSync(folder)
  .sort()
  .map((name) => join(folder, name))
if (way === 'one thread') print(paths.map(size))
else {
  const { Piscina } = await import('piscina')
  const pool = new Piscina({ filename: new URL('./size.js', import.meta.url).href })
  print((await Promise.all(paths.map((path) => pool.run(path)))) as number[])
  await pool.close()
}

function print(sizes: readonly number[]): void {
  process.stdout.write(sizes.map((value) => `${value}\n`).join(''))
}
