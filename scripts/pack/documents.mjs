/**
 * Documents as the package has them: those for users. Pages about the design stay in the repository, and so
 * links to them lead there.
 */
import { dirname, join, relative, sep } from 'node:path'

/** A link to another document: its words, the document, and the section in it. */
const LINK = /\[([^\]]*)\]\((?![a-z]+:)([^)\s#]+\.md)(#[^)\s]*)?\)/g

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
