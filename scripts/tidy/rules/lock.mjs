/**
 * Lock files are whole and name no registry.
 *
 * What npm leaves out is put back by `npm run lock` (scripts/lock), which explains the reason.
 */
import { missingOptional } from '../../lock/complete.mjs'

/** @param {{sources: import('../tree.mjs').Source[]}} tree */
export function locks(tree) {
  const files = tree.sources.filter(({ path }) => /(^|\/)package-lock\.json$/.test(path))
  return files.flatMap(({ path, text }) => {
    const { packages } = JSON.parse(text)
    const lacking = missingOptional(packages).map(({ path: name }) => `lacks ${name}: run \`npm run lock\``)
    const hosted = Object.entries(packages).filter(([, { resolved = '' }]) => /^https?:/.test(resolved))
    const naming = hosted.map(([name]) => `contains where ${name} was downloaded from: see .npmrc`)
    return [...lacking, ...naming].map((message) => ({ path, line: 1, message }))
  })
}
