/**
 * Functions that are sent: a plain one, two that import a package of the workspace, and one by name.
 * The refusals are codes in the line that it prints.
 */
import { zone } from 'corespun'
import { shout } from '@workspace/words'

const cpu = zone.create('cpu', { workers: 1 })
const tasks = cpu.module('@workspace/words/tasks')

const sent = [
  () => cpu.run((n) => n * 2, 4),
  () => cpu.run((text) => shout(text), 'module'),
  () => cpu.run(async (text) => (await import('@workspace/words')).shout(text), 'inside'),
  () => tasks.shouted('name'),
]
const found = await Promise.allSettled(sent.map((each) => each()))
console.log(found.map((each) => (each.status === 'fulfilled' ? each.value : each.reason.code)).join(' '))
await cpu.close()
