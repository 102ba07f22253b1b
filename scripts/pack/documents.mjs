/**
 * Which types and documents the package has, of what a checkout has.
 *
 * Types are those that a door reaches: the rest describes modules that nobody can import. Documents are those
 * for users: pages about the design stay in the repository, and so links to them lead there.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'

/** A module that types name; in comments, too, where it may be an example. */
const NAMED = /(?:\bfrom\s*|\bimport\s*\(?\s*)['"](\.[^'"]+)['"]/g
/** A link to another document: its words, the document, and the section in it. */
const LINK = /\[([^\]]*)\]\((?![a-z]+:)([^)\s#]+\.md)(#[^)\s]*)?\)/g

/**
 * The files of types that the doors of a manifest reach.
 * @param {string} root Of the checkout.
 * @param {Record<string, {types?: string}>} doors The manifest's `exports`.
 * @returns {string[]} Paths.
 */
export function reachedTypes(root, doors) {
  const reached = new Set(
    Object.values(doors)
      .flatMap(({ types = [] }) => types)
      .map((path) => join(root, path)),
  )
  for (const path of reached) {
    for (const [, name] of readFileSync(path, 'utf8').matchAll(NAMED)) {
      const other = join(dirname(path), name.replace(/\.[jt]s$/, '.d.ts'))
      if (existsSync(other)) reached.add(other)
    }
  }
  return [...reached]
}

/**
 * A document whose links to others that are not published lead to the repository; without one they are words.
 * @param {string} text Markdown.
 * @param {string} path Of the document, below the root of the package.
 * @param {(path: string) => boolean} isPublished Whether the package has this document.
 * @param {string} files Where the repository shows the files of this version; '' without a repository.
 */
export function withReachableLinks(text, path, isPublished, files) {
  return text.replace(LINK, (link, words, target, section = '') => {
    const file = relative('.', join(dirname(path), target))
      .split(sep)
      .join('/')
    if (isPublished(file)) return link
    return files === '' ? words : `[${words}](${files}/${file}${section})`
  })
}
