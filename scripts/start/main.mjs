/**
 * The service of examples/service on all cores, with its address, commands to try and measured lines.
 *
 * The server is the command that a user would type, as a child; this process waits for it, hands signals on
 * and ends as it ends.
 */
import { spawn } from 'node:child_process'
import { inRoot, ROOT } from '../set-up/index.mjs'
import { prove } from './proof.mjs'

const PORT = '8080'

/**
 * Serve until a signal.
 * @param {string[]} words More words for `skein serve`, such as `--port 8081`.
 * @returns {Promise<number>} The exit code: 0 when it was asked to stop.
 */
export async function serveExample(words) {
  const command = ['serve', 'examples/service/app.ts', '--port', PORT, ...words]
  const options = { cwd: ROOT, stdio: ['inherit', 'pipe', 'inherit'] }
  const child = spawn(process.execPath, [inRoot('dist', 'cli', 'main.js'), ...command], options)
  // A terminal signals the child as well; it takes a second one for "at once", so only others are handed on.
  const isShared = process.stdin.isTTY === true
  let stopped = false
  const signals = ['SIGINT', 'SIGTERM']
  const onSignal = (signal) => {
    stopped = true
    if (!(isShared && signal === 'SIGINT')) child.kill(signal)
  }
  for (const signal of signals) process.on(signal, onSignal)
  const ended = new Promise((resolve) => child.on('close', (code) => resolve(code ?? 1)))
  const url = await address(child)
  if (url !== undefined) await tell(url, () => stopped)
  const code = await ended
  for (const signal of signals) process.off(signal, onSignal)
  if (code === 2 && url === undefined) hint()
  return stopped ? 0 : code
}

/** The address that the child prints; undefined when it ends without one. */
function address(child) {
  return new Promise((resolve) => {
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (piece) => {
      text += piece
      const url = /http:\/\/\S+/.exec(text)?.[0]
      if (text.includes('\n') && url !== undefined) resolve(url)
    })
    child.stdout.on('close', () => resolve(undefined))
  })
}

async function tell(url, isStopped) {
  console.log(`\n  Open  ${url}\n\nor try`)
  console.log(`  curl -F file=@node_modules/acorn/dist/acorn.js ${url}/api/score`)
  console.log(`  curl -F file=@node_modules/acorn/dist/acorn.js -F timeoutMs=1 ${url}/api/score`)
  console.log(`  npx skein run examples/service/pipeline.ts#score 'src/**/*.ts'\n`)
  console.log('measured now, beside whom npm run report compares it with:')
  await prove(url, (line) => isStopped() || console.log(line))
  if (!isStopped())
    console.log('\nCtrl-C stops it. npm run compare shows the pipeline on one core and on all.')
}

function hint() {
  console.error('another port: npm start -- --port 8081')
}
