/**
 * Documents as the package has them: those for users. Pages about the design and records of the bench stay in
 * the repository, so links to the former lead there, and marks that name the latter are left out. Examples in
 * TypeScript become JavaScript, because Node strips no types below node_modules.
 */
import { dirname, join, relative, sep } from 'node:path'
import { inRoot } from '../set-up/index.mjs'

/** A link to another document, or a picture: its words, the file, and the section in it. */
const LINK = /(!?)\[([^\]]*)\]\((?![a-z]+:)([^)\s#]+\.(?:md|svg))(#[^)\s]*)?\)/g

/** A mark behind a number, which only the check of the repository reads. */
const MARK = / <!-- record: \S+ -->/g

/** A module of the examples, in the examples and in the documents. */
const MODULE = { examples: /([\w-]+)\.ts\b/g, documents: /(\bexamples\/[\w/-]+)\.ts\b/g }
/** One that is typed, or named in prose: not the words of a link. */
const TYPED = /(?<=[ `])examples\/[\w/-]+\.ts\b/g

/**
 * A document or example as it is packed.
 * @param {string} path Below the root of the package.
 * @param {(path: string) => boolean} isPublished Whether the package has this document.
 * @param {string} files Where the repository shows the files of this version; '' without a repository.
 */
export async function asPublished(path, text, isPublished, files) {
  if (path.endsWith('.md')) {
    const reachable = withReachableLinks(withoutMarks(text), path, isPublished, files)
    const installed = reachable.replace(TYPED, 'node_modules/corespun/$&')
    return { path, text: installed.replace(MODULE.documents, '$1.js') }
  }
  if (!path.startsWith('examples/')) return { path, text }
  const named = path.replace(/\.ts$/, '.js')
  const script = named === path ? text : await scriptOf(text, inRoot(path))
  return { path: named, text: script.replace(MODULE.examples, '$1.js') }
}

/** Imported here: the set-up compiles it. */
async function scriptOf(text, path) {
  const { stripTypes } = await import('../../dist/zone/worker/loader/strip.js')
  return stripTypes(text, path)
}

/** A document without the marks of its numbers. @param {string} text Markdown. */
export function withoutMarks(text) {
  return text.replace(MARK, '')
}

/**
 * A document whose links to others that are not published lead to the repository; without one they are words,
 * and pictures are left out.
 * @param {string} text Markdown; the other arguments are those of {@link asPublished}.
 */
export function withReachableLinks(text, path, isPublished, files) {
  return text.replace(LINK, (link, picture, words, target, section = '') => {
    const file = relative('.', join(dirname(path), target))
      .split(sep)
      .join('/')
    if (isPublished(file)) return link
    if (picture !== '') return files === '' ? '' : `![${words}](${files}/${file}?raw=true)`
    return files === '' ? words : `[${words}](${files}/${file}${section})`
  })
}
