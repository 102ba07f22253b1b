/**
 * Chromium for the tests of pages: found on the PATH or named by CORESPUN_CHROMIUM; without one, they report
 * it and are skipped. On Debian: apt-get install chromium.
 */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { chromium } from 'playwright-core'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']
const executablePath = findChromium()

/** Why tests are skipped, or false. */
export const skip = executablePath === undefined && 'no chromium on the PATH (or in CORESPUN_CHROMIUM)'

export const launched = () => chromium.launch({ executablePath, args: ['--no-sandbox'] })

function findChromium() {
  const named = process.env.CORESPUN_CHROMIUM
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
  const paths = named ? [named] : folders.flatMap((folder) => NAMES.map((name) => join(folder, name)))
  return paths.find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
