/**
 * `npm run lock`: put back what npm leaves out of package-lock.json.
 *
 * A package with compiled parts names one optional package per platform. npm records those it could look up
 * while it made the lock, and leaves the others out without a word; `npm ci` then refuses the lock as
 * incomplete, wherever it can look up those. So each of them is written down here, at the exact version its
 * parent names and with the platform in its name. npm 11 leaves them out as well where a registry mirror
 * lacks the other platforms (seen with 11.19.1), so no standard tool does this. Run it after `npm install`;
 * `npm run tidy` reports when it is needed.
 */
import { onSupportedNode } from './set-up/node-version.mjs'

onSupportedNode(async function () {
  const { readFileSync, writeFileSync } = await import('node:fs')
  const { inRoot } = await import('./set-up/index.mjs')
  const { completed } = await import('./lock/complete.mjs')
  for (const folder of ['.', 'bench', 'test/package/projects/tools', 'test/plugin/tools']) {
    const path = inRoot(folder, 'package-lock.json')
    const lock = JSON.parse(readFileSync(path, 'utf8'))
    const { packages, added } = completed(lock.packages)
    console.log(`${folder}: ${added.length} packages of other platforms added to the lock`)
    if (added.length > 0) writeFileSync(path, `${JSON.stringify({ ...lock, packages }, undefined, 2)}\n`)
  }
  return 0
})
