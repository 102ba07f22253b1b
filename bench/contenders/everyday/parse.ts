/**
 * The work of table `everyday`: parses a JavaScript file and returns the length of its text and of its tree.
 *
 * One plain function of a path, as a user writes it. Every contender calls this one.
 */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { parse } from 'acorn'

/** @param path Of a module in JavaScript. */
export default function measure(path: string): { file: string; chars: number; nodes: number } {
  const text = readFileSync(path, 'utf8')
  let nodes = 0
  const open: unknown[] = [parse(text, { ecmaVersion: 'latest', sourceType: 'module' })]
  while (open.length > 0) {
    const value = open.pop()
    if (typeof value !== 'object' || value === null) continue
    if (!Array.isArray(value)) nodes += 1
    open.push(...Object.values(value))
  }
  return { file: basename(path), chars: text.length, nodes }
}
