/**
 * `npm run compare`: one TypeScript function over thousands of real source files, on one core and on all.
 *
 * The same work runs three times: as a plain loop in this thread, then by the command `corespun run` with one
 * worker and with a worker per core. The times of the commands include their start-up. The arrow then runs
 * once more in this process, for its plan with measured times. All runs must return the same scores; if they
 * differ, this ends with an error.
 *
 *   node examples/service/start.mjs [--files 4000] [--workers <one for each core>]
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { statSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import 'corespun/typescript'
import { zone } from 'corespun/zone'
import { glob } from 'tinyglobby'

/** Larger files are generated bundles of whole programs. */
const FILE_BYTES_MAX = 4_000_000
const root = fileURLToPath(new URL('../../', import.meta.url))
const { values } = parseArgs({ options: { files: { type: 'string' }, workers: { type: 'string' } } })
const filesMax = Number(values.files ?? 4000)
const workers = Number(values.workers ?? availableParallelism())

process.chdir(root)
try {
  await show(await sourceFiles())
} catch (thrown) {
  print(`\n${thrown instanceof assert.AssertionError ? `Not the same results: ${thrown.message}` : thrown}`)
  process.exitCode = 1
}

async function show(paths) {
  const megabytes = paths.reduce((sum, path) => sum + statSync(path).size, 0) / 1e6
  print(`\nscore of examples/service/pipeline.ts over ${counted(paths.length)} JavaScript files`)
  print(`(${megabytes.toFixed(1)} MB in node_modules), Node ${process.versions.node}, ${coresShown()}:\n`)

  const plain = await timed(() => plainLoop(paths))
  report('plain loop, main thread', paths, plain.seconds)
  const one = await timed(() => corespunRun(paths, 1))
  report('corespun run --workers 1', paths, one.seconds)
  const all = workers === 1 ? one : await timed(() => corespunRun(paths, workers))
  if (workers > 1) report(`corespun run --workers ${workers}`, paths, all.seconds, one.seconds / all.seconds)

  compare(plain.value, one.value, 'one worker')
  compare(plain.value, all.value, `${workers} workers`)
  print(`\nThe same ${counted(paths.length)} scores each time. ${highlights(all.value)}`)
  await showPlan(paths, all.value)
  print('Try it on your own files:  npx corespun run examples/service/pipeline.ts#score <paths or globs>\n')
}

/** The files, in the same order on every machine. */
async function sourceFiles() {
  const patterns = ['node_modules/**/*.js', 'node_modules/**/*.mjs', 'node_modules/**/*.cjs']
  const found = await glob(patterns, { cwd: root, followSymbolicLinks: false, expandDirectories: false })
  const files = found.filter((path) => {
    const stats = statSync(path)
    return stats.isFile() && stats.size <= FILE_BYTES_MAX
  })
  assert(files.length > 0, 'no file in node_modules: run npm ci first')
  return files.sort().slice(0, filesMax)
}

/** The obvious solution. */
async function plainLoop(paths) {
  const { scoreFile, score } = await import('./pipeline.ts')
  return paths.map((path) => (scoreFile ?? score)(path))
}

/** Run the same arrow in this process, its expensive stages in a zone, and print the costs of each stage. */
async function showPlan(paths, expected) {
  const { scoring } = await import('./pipeline.ts')
  const cpu = zone.create('cpu', { workers })
  await cpu.ready()
  const arrow = scoring(cpu)
  const scores = []
  const { seconds } = await timed(async () => {
    for await (const score of arrow.stream(paths, { concurrency: workers })) scores.push(score)
  })
  await cpu.close()
  compare(expected, scores, 'the arrow in this process')
  print(`\nIn this process, parse and analyse in a zone of ${workers}: ${seconds.toFixed(2)} s. Its plan:\n`)
  print(arrow.explain().replace(/^/gm, '  ').trimEnd() + '\n')
}

/** Run the command as a user does; it reads the paths from standard input. */
function corespunRun(paths, workerCount) {
  const command = [fileURLToPath(new URL('../../lib/cli/main.js', import.meta.url))]
  const words = ['run', 'examples/service/pipeline.ts#score', '--workers', String(workerCount), '-']
  const child = spawn(process.execPath, [...command, ...words], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.on('error', () => {}) // A child that ends early writes the reason to standard error.
  child.stdin.end(paths.join('\n'))
  const pieces = []
  child.stdout.on('data', (piece) => pieces.push(piece))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => {
      if (code !== 0) return reject(new Error(`corespun ${words.join(' ')} ended with ${code}`))
      const lines = Buffer.concat(pieces).toString('utf8').trimEnd().split('\n')
      resolve(lines.map((line) => JSON.parse(line)))
    })
  })
}

async function timed(work) {
  const startMs = performance.now()
  const value = await work()
  return { value, seconds: (performance.now() - startMs) / 1000 }
}

function report(what, paths, seconds, speedUp) {
  const rate = `${counted(Math.round(paths.length / seconds))} files/s`
  const times = speedUp === undefined ? '' : `   ${speedUp.toFixed(2)} × one worker`
  print(`  ${what.padEnd(26)}${`${seconds.toFixed(2)} s`.padStart(9)}${rate.padStart(16)}${times}`)
}

/** @throws {assert.AssertionError} naming the first file whose score differs. */
function compare(expected, received, who) {
  assert.equal(received.length, expected.length, `${who}: as many results as files`)
  for (const [index, score] of expected.entries()) {
    // Through JSON, as the command's scores, which drops undefined values only.
    const viaJson = JSON.parse(JSON.stringify(score))
    assert.deepEqual(received[index], viaJson, `${who}: the score of ${score.path}`)
  }
}

function highlights(scores) {
  const parsed = scores.filter((score) => score.parsed)
  const share = Math.round((parsed.filter((score) => score.grade === 'A').length * 100) / parsed.length)
  const worst = parsed.reduce((most, score) =>
    score.mostTangled.cyclomatic > most.mostTangled.cyclomatic ? score : most,
  )
  const { name, line, cyclomatic } = worst.mostTangled
  const position = `${worst.path.replace('node_modules/', '')}:${line}`
  const ways = `${counted(cyclomatic)} ways through it`
  return `${share}% earn an A;\nthe most tangled function is ${name} in ${position}: ${ways}.`
}

function coresShown() {
  const model = cpus()[0]?.model.trim() ?? 'unknown processor'
  return `${availableParallelism()} ${availableParallelism() === 1 ? 'core' : 'cores'} (${model})`
}

function counted(count) {
  return count.toLocaleString('en-US')
}

function print(line) {
  process.stdout.write(`${line}\n`)
}
