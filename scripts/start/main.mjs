/**
 * The service of examples/service on all cores, with its address and commands to try.
 *
 * The server is the command that a user would type, in this process: `corespun serve` itself takes a Ctrl-C
 * that npm hands on for one, and explains the second. What is added follows its lines.
 */
import { pathToFileURL } from 'node:url'
import { inRoot } from '../set-up/index.mjs'

const PORT = '8080'

/** The command ends with these when a signal cuts requests; an end that was asked for is a good one. */
const INTERRUPTED = [130, 143]

/**
 * Serve until a signal; the command ends the process.
 * @param {string[]} words More words for `corespun serve`, such as `--port 8081`.
 */
export async function serveExample(words) {
  const port = words.some((word) => /^(--port\b|-p)/.test(word)) ? [] : ['--port', PORT]
  const command = inRoot('lib', 'cli', 'main.js')
  process.chdir(inRoot())
  process.argv = [process.execPath, command, 'serve', 'examples/service/app.ts', ...port, ...words]
  following(process.stdout, /^corespun: serving (http:\/\/\S+) /, introduce)
  following(process.stderr, /address already in use: \S*:(\d+)/, hint)
  const stop = () => process.kill(process.pid, 'SIGTERM')
  process.once('SIGHUP', stop)
  process.stdout.once('error', stop) // `npm start | head`
  process.on('exit', (code) => {
    if (INTERRUPTED.includes(code)) process.exitCode = 0
  })
  await import(pathToFileURL(command).href)
}

/** Calls a function once, behind the first line of a stream that has this, with what was found. */
function following(stream, pattern, print) {
  const { write } = stream
  stream.write = (text, ...others) => {
    const found = pattern.exec(text)?.[1]
    if (found !== undefined) stream.write = write
    const isTaken = write.call(stream, text, ...others)
    if (found !== undefined) print(found)
    return isTaken
  }
}

function introduce(url) {
  const print = console.log
  print(`\n  Open  ${url}\n\nor try, in another terminal:\n`)
  print(`  curl -F file=@node_modules/acorn/dist/acorn.js ${url}/api/score`)
  print(`  curl -F file=@node_modules/acorn/dist/acorn.mjs -F timeoutMs=1 ${url}/api/score   # cancelled`)
  print(`  npx corespun run examples/service/pipeline.ts#score 'src/**/*.ts'\n`)
  print('Ctrl-C stops it. `npm run compare` shows the pipeline on one core and on all;')
  print('`npm run report` prints the records beside piscina, fastify, node:http and others.')
}

function hint(port) {
  if (port < 65_535) console.error(`another port: npm start -- --port ${Number(port) + 1}`)
}
