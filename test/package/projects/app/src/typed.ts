/**
 * The functions of program.js again, with types that a tool must erase.
 * The JavaScript ones are loaded without any tool.
 */
import { basename } from 'node:path'
import { zone } from 'corespun'
import { answersOf } from './answers.js'
import marks, { shout } from './words.js'

type Text = string
const MARK: Text = '!'
const cpu = zone.create('cpu', { workers: 1 })
const tasks = cpu.module<{ shouted: (text: Text) => Text }>(new URL('./tasks.js', import.meta.url))

const marked = (text: Text): Text => marks(shout(text), MARK)

const sent = [
  () =>
    cpu.run((n: number): number => {
      const twice = (m: number): number => m * 2
      return twice(n)
    }, 4),
  () => cpu.run(marked, 'module'),
  () => cpu.map(['/a/b'], (path: Text) => shout(basename(path))),
  () => cpu.run(async () => (await import('node:path')).extname('a.b')),
  () => tasks.shouted('name'),
]
console.log(await answersOf(sent))
await cpu.close()
