/**
 * Functions that are sent: a plain one, one of the module, one with an import in `map`, one that imports, and
 * one by name.
 */
import { basename } from 'node:path'
import { zone } from 'corespun'
import { answersOf } from './answers.js'
import marks, { shout } from './words.js'

const MARK = '!'
const cpu = zone.create('cpu', { workers: 1 })
const tasks = cpu.module(new URL('./tasks.js', import.meta.url))

const marked = (text) => marks(shout(text), MARK)

const sent = [
  () =>
    cpu.run((n) => {
      const twice = (m) => m * 2
      return twice(n) + new Date(0).getTime()
    }, 4),
  () => cpu.run(marked, 'module'),
  () => cpu.map(['/a/b'], (path) => shout(basename(path))),
  () => cpu.run(async () => (await import('node:path')).extname('a.b')),
  () => tasks.shouted('name'),
]

/** What they return, in one line. */
export async function answers() {
  const text = await answersOf(sent)
  await cpu.close()
  return text
}
