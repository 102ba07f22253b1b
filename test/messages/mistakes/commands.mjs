/**
 * Mistakes that take a process: the command line, programs of their own.
 *
 * The code of a row is the exit code; its message is what was written: errors to stderr, records to stdout.
 */
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { corespun } from '../../cli/corespun.mjs'
import { program } from '../../zone/run.mjs'

const cwd = fileURLToPath(new URL('./helpers/', import.meta.url))

/** Runs the command, and throws its exit code with what it wrote: errors to stderr, records to stdout. */
const command =
  (words, input = '1\n') =>
  async () => {
    const { code, out, err } = await corespun(words, input, { cwd })
    throw { code, message: (out.includes('"error"') ? out : err).trim() }
  }

/** Runs a program that fails. */
const failing = (text) => async () => {
  const { code, err } = await program(text)
  throw { code, message: err }
}

const RUN = '(corespun run --help shows how)'
const SERVE = '(corespun serve --help shows how)'
const record = (error) => `{"item":<n>,"error":{${error}}}`

/** A port that another program listens on. */
const taken = createServer().listen(0, '127.0.0.1').unref()
await new Promise((resolve) => taken.once('listening', resolve))
const { port } = taken.address()
export const close = () => new Promise((resolve) => taken.close(resolve))

/** @type {import('../check.mjs').Mistake[]} */
export const mistakes = [
  {
    mistake: 'a command that does not exist',
    make: command(['rnu', './functions.mjs']),
    code: 2,
    message:
      "{{where|corespun}}: unknown {{what|command}} {{received|'rnu'}}; {{remedy|did you mean run?}} " +
      '(corespun --help shows how)',
  },
  {
    mistake: 'run without a module',
    make: command(['run']),
    code: 2,
    message: `{{where|corespun}}: name {{what|the module}} whose function to run {{remedy|${RUN}}}`,
    state: 'the argument is absent',
  },
  {
    mistake: 'a module file that does not exist',
    make: command(['run', './nope.mjs#len']),
    code: 2,
    message:
      'corespun: {{where+what+received|./nope.mjs}}: no such module, {{remedy|neither a file here nor ' +
      'an installed package}}',
  },
  {
    mistake: 'an export that the module does not have',
    make: command(['run', './functions.mjs#lne']),
    code: 2,
    message:
      'corespun: {{where|./functions.mjs}}: has no export {{what+received|"lne"}}; ' +
      '{{remedy|use ./functions.mjs#big or ./functions.mjs#exits or ./functions.mjs#len or ' +
      './functions.mjs#slow}}',
  },
  {
    mistake: 'an export that is a number',
    make: command(['run', './functions.mjs#number']),
    code: 2,
    message:
      'corespun: {{where|./functions.mjs}}: {{what|export "number"}} {{remedy|is not a function}} but ' +
      '{{received|a number}}',
  },
  {
    mistake: 'a hash without a name',
    make: command(['run', './functions.mjs#']),
    code: 2,
    message:
      `corespun: {{what|an export's name}} is missing behind # in {{where+received|./functions.mjs#}} ` +
      `{{remedy|${RUN}}}`,
  },
  {
    mistake: 'a pattern that matches nothing',
    make: command(['run', './functions.mjs#len', '*.nope']),
    code: 2,
    message: 'corespun: {{where+what+received|*.nope}}: {{remedy|matches no file}}',
  },
  {
    mistake: 'an input that does not exist',
    make: command(['run', './functions.mjs#len', './nope.txt']),
    code: 1,
    message:
      '{"item":1,"path":"{{where|./nope.txt}}","error":{"name":"CliError","code":"CLI_INPUT_UNREADABLE",' +
      '"message":"{{what+received|./nope.txt}}: cannot be read: {{remedy|no such file or directory}}"}}',
  },
  {
    mistake: 'no worker for run',
    make: command(['run', './functions.mjs#len', '--workers', '0']),
    code: 2,
    message:
      'corespun: {{where+what|--workers}} {{remedy|takes a whole number from 1 to 1024}}, not ' +
      `{{received|"0"}} ${RUN}`,
  },
  {
    mistake: 'a time that is not one',
    make: command(['run', './functions.mjs#len', '--timeout', 'soon']),
    code: 2,
    message:
      'corespun: {{where+what|--timeout}} {{remedy|takes a time such as 250 (milliseconds), 250ms, 2s, ' +
      '1.5m or 1h}}, ' +
      `not {{received|"soon"}} ${RUN}`,
  },
  {
    mistake: 'a misspelt flag of run',
    make: command(['run', './functions.mjs#len', '--worker', '2']),
    code: 2,
    message:
      `{{where|corespun}}: Unknown option {{what+received|'--worker'}}; {{remedy|did you mean ` +
      `--workers?}} ${RUN}`,
  },
  {
    mistake: 'a flag that does not exist',
    make: command(['run', './functions.mjs#len', '--cluster']),
    code: 2,
    message: `{{where|corespun}}: Unknown option {{what+received|'--cluster'}} {{remedy|${RUN}}}`,
  },
  {
    mistake: 'a module that throws while it loads',
    make: command(['run', './throws.mjs#len']),
    code: 2,
    message:
      'corespun: ./throws.mjs: {{what|failed to load}}: {{received|DATABASE_URL}} {{remedy|is not set}} ' +
      '({{where|<any>/helpers/throws.mjs:<n>:<n>}})',
  },
  {
    mistake: 'a line that is longer than the limit',
    make: command(['run', './functions.mjs#len', '--line-max', '3'], 'abcdef\n'),
    code: 1,
    message: record(
      '"name":"CliError","code":"CLI_LINE_TOO_LONG","message":"{{where+what|the line}} is longer than ' +
        '{{received|3}} ' +
        'characters ({{remedy|--line-max}})"',
    ),
  },
  {
    mistake: 'a line that is not JSON',
    make: command(['run', './functions.mjs#len', '--ndjson'], 'x y\n'),
    code: 1,
    message: record(
      '"name":"CliError","code":"CLI_LINE_NOT_JSON","message":"{{where+what|the line}} {{remedy|is not ' +
        'JSON}}: ' +
        'SyntaxError: {{received|<any>}}"',
    ),
  },
  {
    mistake: 'a result that is not JSON',
    make: command(['run', './functions.mjs#big']),
    code: 1,
    message: record(
      '"name":"CliError","code":"CLI_RESULT_NOT_JSON","message":"{{what|the result}} {{remedy|cannot ' +
        'be written as JSON}}: ' +
        'it has {{where+received|a BigInt at sizes[0]}}"',
    ),
  },
  {
    mistake: 'a function that takes too long',
    make: command(['run', './functions.mjs#slow', '--timeout', '50']),
    code: 1,
    message: record(
      '"name":"CliError","code":"CLI_ITEM_TIMEOUT","message":"{{what+where|ran longer}} than ' +
        '{{received|50 ms}} ({{remedy|--timeout}})"',
    ),
  },
  {
    mistake: 'a function that exits',
    make: command(['run', './functions.mjs#exits']),
    code: 1,
    message: record(
      '"name":"ZoneError","code":"WORKER_DIED","message":"worker {{what+where|corespun run/<n>}} died ' +
        'while it ran the task: ' +
        'it exited with {{received|code 1}} ({{remedy|process.exit() ends the worker; throw an error ' +
        'instead}})"',
    ),
  },
  {
    mistake: 'serve without a module',
    make: command(['serve']),
    code: 2,
    message: `{{where|corespun}}: name {{what|the module}} whose app to serve {{remedy|${SERVE}}}`,
    state: 'the argument is absent',
  },
  {
    mistake: 'a module without an app',
    make: command(['serve', './no-app.mjs', '--port', '0']),
    code: 2,
    message:
      'corespun: {{where|./no-app.mjs}}: {{what|default export}} is not an app: {{remedy|export ' +
      '`routes`, `fetch`, a function (request) => Response, or an app for (req, res)}}; ' +
      'it exports {{received|x}}',
  },
  {
    mistake: 'a wrong route in an app',
    make: command(['serve', './wrong-route.mjs', '--port', '0', '--workers', '1']),
    code: 2,
    message:
      "corespun: {{where|./wrong-route.mjs: routes['/a']}} must be {{what|a table of methods}}; " +
      '{{remedy|method names are upper case: GET instead of get}}; received {{received|a plain object}}',
  },
  {
    mistake: 'a misspelt flag of serve',
    make: command(['serve', './no-app.mjs', '--prot', '3000']),
    code: 2,
    message:
      `{{where|corespun}}: Unknown option {{what+received|'--prot'}}; {{remedy|did you mean --port?}} ` +
      SERVE,
  },
  {
    mistake: 'a port that is not a number',
    make: command(['serve', './no-app.mjs', '--port', 'http']),
    code: 2,
    message:
      'corespun: {{where+what|--port}} {{remedy|takes a whole number from 0 to 65535}}, not ' +
      `{{received|"http"}} ${SERVE}`,
  },
  {
    mistake: 'a port of another program',
    make: command(['serve', './app.mjs', '--port', String(port), '--workers', '1']),
    code: 2,
    message:
      `corespun: {{what|address already in use}}: {{where+received|127.0.0.1:${port}}}; ` +
      '{{remedy|stop the other server, or pass another port (0 selects a free one)}}',
  },
  {
    mistake: 'exported in the main module',
    make: async () => {
      const { code, out } = await corespunNode(['./main.mjs'])
      throw { code, message: out.trim() }
    },
    code: 1,
    message:
      'FUNCTION_MODULE module {{where|file://<any>/main.mjs}} cannot be loaded: ' +
      '{{received|ZoneError: a zone named "main" already ' +
      'exists}}; a worker of zone "main" has loaded a module that creates it: use zone.getOrCreate() ' +
      'there, or move what tasks need into another module; {{what|it is the main module of this ' +
      'program}}, which the ' +
      'worker has run again from its beginning: {{remedy|move the function to a module of its own}}',
  },
  {
    mistake: 'a main module that calls its own export, and runs again without an error',
    make: async () => {
      const { code, err } = await corespunNode(['./again.mjs'])
      throw { code, message: err.trim() }
    },
    code: 0,
    message:
      '(node:<n>) [CORESPUN_MAIN_MODULE] CorespunWarning: {{where+received|file://<any>/again.mjs}} is ' +
      '{{what|the main module of this program}}, and each worker that calls a function of it runs the ' +
      'program again from its beginning; {{remedy|move the function to a module of its own, or begin the ' +
      'program with a test of isMainThread}}\n(Use `node --trace-warnings ...` to show where the warning ' +
      'was created)',
  },
  {
    mistake: 'a fiber that fails and that nobody joins',
    make: failing(`
      import { fork, sleep } from '${import.meta.resolve('corespun/fiber')}'
      process.on('uncaughtException', ({ code, message }) => (console.error(code, message), process.exit(7)))
      fork(function* () { yield* sleep(1); throw new Error('lost') }, { name: 'mailer', daemon: true })`),
    code: 7,
    message:
      'FIBER_UNHANDLED {{where+what|<any>mailer<any>}} ended with a defect and nobody joined ' +
      'it: Error: {{received|lost}}; {{remedy|join() it, handle the error inside, or receive it with ' +
      'onError()}}',
  },
  {
    mistake: 'a timer that throws after its task',
    make: failing(`
      process.on('uncaughtException', ({ code, message }) => (console.error(code, message), process.exit(7)))
      setTimeout(() => {}, 20_000)
      const jobs = zone.create('jobs', { workers: 1 })
      await jobs.run(() => void setTimeout(() => { throw new Error('late') }, 1))`),
    code: 7,
    message:
      'WORKER_ERROR worker {{where+what|jobs/0}}, outside of its tasks: <any>{{received|late}}; ' +
      '{{remedy|handle it where it is thrown (see the cause), or receive it with zone.onError()}}',
  },
  {
    mistake: 'a module that cannot be loaded in a worker, from the start',
    make: failing(`
      process.on('uncaughtException', () => {})
      const execArgv = ['--import', 'data:text/javascript,process.exit(9)']
      const broken = zone.create('broken', { workers: 1, execArgv })
      const failed = ({ code, message }) => (console.error(code, message), process.exit(7))
      await broken.run(() => 1).catch(failed)`),
    code: 7,
    message:
      'ZONE_START_FAILED the workers of {{what+where|zone broken}} cannot be started: it exited with ' +
      '{{received|code 9}} ' +
      '({{remedy|process.exit() ends the worker; throw an error instead}})',
  },
]

async function corespunNode(words) {
  const { spawn } = await import('node:child_process')
  const child = spawn(process.execPath, words, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  let [out, err] = ['', '']
  child.stdout.on('data', (text) => (out += text))
  child.stderr.on('data', (text) => (err += text))
  const code = await new Promise((resolve) => child.once('close', resolve))
  return { code, out, err }
}
