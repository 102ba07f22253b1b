/**
 * Documents as the package has them. Guides, examples and records of the bench stay in the repository, so
 * links to the former lead there, and marks that name the latter are left out.
 */
import { dirname, join, relative, sep } from 'node:path'

/** A link to another document, or a picture: its words, the file, and the section in it. */
const LINK = /(!?)\[([^\]]*)\]\((?![a-z]+:)([^)\s#]+\.(?:md|svg))(#[^)\s]*)?\)/g

/** A mark behind a number, which only the check of the repository reads. */
const MARK = / <!-- record: \S+ -->/g

/** A document without the marks of its numbers. @param {string} text Markdown. */
export function withoutMarks(text) {
  return text.replace(MARK, '')
}

/**
 * A document whose links to others that are not published lead to the repository; without one they are words,
 * and pictures are left out.
 * @param {string} text Markdown.
 * @param {string} path Below the root of the package.
 * @param {(path: string) => boolean} isPublished Whether the package has this document.
 * @param {string} files Where the repository shows the files of this version; '' without a repository.
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
