/**
 * Has this already been done? Answered by content, never by times of files.
 *
 * A stamp holds the hash of everything a step reads and the hash of everything it wrote. A step is current
 * when both still agree, so a switched branch, a deleted dist or a hand-made build are all noticed, and a
 * fresh checkout of the same content is not.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { MEMORY, ROOT } from './place.mjs'

/**
 * All files below a folder or the file itself, sorted; nothing when it does not exist.
 * @param {string} path
 * @param {(path: string) => boolean} [wanted]
 * @returns {string[]}
 */
export function filesBelow(path, wanted = () => true) {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return []
  if (stat.isFile()) return wanted(path) ? [path] : []
  const names = readdirSync(path).sort()
  return names.flatMap((name) =>
    name === 'node_modules' || name === 'target' ? [] : filesBelow(join(path, name), wanted),
  )
}

/**
 * One hash for names and contents of files, and for facts that are no files.
 * @param {string[]} paths
 * @param {string[]} [facts]
 */
export function hashOf(paths, facts = []) {
  const hash = createHash('sha256')
  for (const fact of facts) hash.update(`fact ${fact}\n`)
  for (const path of paths) {
    const content = readFileSync(path)
    hash.update(`file ${relative(ROOT, path)} ${content.length}\n`).update(content)
  }
  return hash.digest('hex')
}

/**
 * Whether a step's stamp agrees with what it would read and has written.
 * @param {string} name
 * @param {string} inputs Hash of what it reads.
 * @param {() => string} outputs Hash of what it wrote; only asked for when the inputs agree.
 */
export function isCurrent(name, inputs, outputs) {
  try {
    const stamp = JSON.parse(readFileSync(join(MEMORY, `${name}.json`), 'utf8'))
    return stamp.inputs === inputs && stamp.outputs === outputs()
  } catch {
    return false // no stamp, or half of one
  }
}

/**
 * Remember that a step was done.
 * @param {string} name
 * @param {string} inputs
 * @param {string} outputs
 */
export function remember(name, inputs, outputs) {
  mkdirSync(MEMORY, { recursive: true })
  writeFileSync(join(MEMORY, `${name}.json`), JSON.stringify({ inputs, outputs }, undefined, 2))
}

/** @param {string} name Forget that a step was done: it is about to change its outputs. */
export function forget(name) {
  rmSync(join(MEMORY, `${name}.json`), { force: true })
}
