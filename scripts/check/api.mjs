/**
 * The public surface, one report in api/ for each entry point of package.json: `npm run check` fails
 * where the built declarations differ from a report, `npm run api` writes the reports for a review. It also
 * fails where documentation is missing.
 *
 * A process of its own: API Extractor computes for seconds, and the other checks wait for their processes.
 */
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { doors, inRoot, MEMORY } from '../set-up/index.mjs'
import { undocumented } from './documented.mjs'

/** Reports of the last run, compared with those in api/. */
const FRESH = join(MEMORY, 'api')
const KINDS = ['compilerMessageReporting', 'extractorMessageReporting', 'tsdocMessageReporting']
const QUIET = Object.fromEntries(KINDS.map((kind) => [kind, { default: { logLevel: 'none' } }]))
const COMPILER = {
  target: 'es2022',
  lib: ['es2023', 'esnext.disposable'],
  module: 'nodenext',
  types: ['node'],
  strict: true,
  skipLibCheck: true,
}

/** The name of its report → the declarations of an entry point. */
function entryPoints() {
  const nameOf = (door) => door.replace(/\/index$/, '').replaceAll('/', '-')
  return new Map(doors().map((door) => [nameOf(door), inRoot('dist', `${door}.d.ts`)]))
}

/**
 * @param {boolean} isWrite Put the reports into api/ instead of comparing.
 * @returns {string[]} The names of the reports that differ from api/.
 */
function compare(isWrite) {
  const extractor = createRequire(import.meta.url)('@microsoft/api-extractor')
  const { CompilerState, Extractor, ExtractorConfig } = extractor
  rmSync(FRESH, { recursive: true, force: true })
  for (const folder of [FRESH, inRoot('api')]) mkdirSync(folder, { recursive: true })
  const configs = [...entryPoints()].map(([name, mainEntryPointFilePath]) => {
    const folders = { reportFolder: inRoot('api'), reportTempFolder: FRESH }
    const apiReport = { enabled: true, ...folders, reportFileName: `${name}.api.md` }
    const configObject = {
      projectFolder: inRoot(),
      mainEntryPointFilePath,
      newlineKind: 'lf',
      compiler: { overrideTsconfig: { compilerOptions: COMPILER } },
      apiReport,
      docModel: { enabled: true, apiJsonFilePath: join(FRESH, `${name}.api.json`) },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: QUIET,
    }
    const configObjectFullPath = undefined
    const packageJsonFullPath = inRoot('package.json')
    return [name, ExtractorConfig.prepare({ configObject, configObjectFullPath, packageJsonFullPath })]
  })
  // One program of all: they have most of their declarations in common, and those of Node.
  const additionalEntryPoints = configs.map(([, { mainEntryPointFilePath }]) => mainEntryPointFilePath)
  const compilerState = CompilerState.create(configs[0][1], { additionalEntryPoints })
  const messageCallback = (message) => void (message.handled = true)
  const options = { compilerState, localBuild: isWrite, messageCallback }
  const isChanged = ([, config]) => Extractor.invoke(config, options).apiReportChanged
  return configs.filter(isChanged).map(([name]) => name)
}

/** What lacks documentation, after `compare`. */
function documentation() {
  const doors = [...entryPoints().keys()].map((name) => {
    const report = readFileSync(join(FRESH, `${name}.api.md`), 'utf8')
    const model = JSON.parse(readFileSync(join(FRESH, `${name}.api.json`), 'utf8'))
    return [name, { model, report }]
  })
  return undocumented(new Map(doors))
}

const isWrite = process.argv.includes('--write')
const differing = compare(isWrite)
const what = isWrite
  ? 'written'
  : 'differs from the built declarations: run npm run api and review the difference'
for (const name of differing) console.log(`api/${name}.api.md: ${what}`)
const findings = documentation()
for (const finding of findings) console.log(finding)
process.exitCode = (differing.length > 0 && !isWrite) || findings.length > 0 ? 1 : 0
