/**
 * Lines of shell of the documentation, run in a folder as a reader types them.
 *
 * `corespun` and `npx corespun` are this checkout's. `node` loads TypeScript where the Node of the test does
 * not, by `corespun/typescript`, as the pages ask their readers to.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { inRoot } from '../../scripts/set-up/index.mjs'
import { PROGRAM_MS_MAX, programFolder } from './programs.mjs'

const stripping = process.features.typescript ? '' : '--import corespun/typescript'
const main = inRoot(JSON.parse(readFileSync(inRoot('package.json'), 'utf8')).bin.corespun)

export class Shell {
  #options

  /** @param {string} cwd A folder in which `corespun` can be imported. @param {string} [path] Of the Node. */
  constructor(cwd, path = process.execPath) {
    const node = JSON.stringify(path)
    const bin = programFolder('bin-')
    for (const [name, command] of [
      ['corespun', `${node} ${JSON.stringify(main)}`],
      ['npx', ''],
      ['node', `${node} ${stripping}`],
    ]) {
      writeFileSync(join(bin, name), `#!/bin/sh\nexec ${command} "$@"\n`)
      chmodSync(join(bin, name), 0o755)
    }
    const PATH = [bin, process.env.PATH].join(delimiter)
    this.#options = { cwd, env: { ...process.env, NODE_NO_WARNINGS: '1', PATH }, encoding: 'utf8' }
  }

  /** Run a line, which must exit with 0. @returns {string} What it prints. */
  typed(line) {
    const options = { ...this.#options, timeout: PROGRAM_MS_MAX }
    const { status, stdout, stderr } = spawnSync('sh', ['-euc', line], options)
    assert.equal(status, 0, `${line}\n${stdout}${stderr}`)
    return stdout
  }

  /**
   * Run a line that serves, on a free port; then it must end well by the signal of a terminal.
   * @param {string} line
   * @param {string} [request] A line of curl; without it `/` must have the status 200.
   * @returns {Promise<string>} What that line prints.
   */
  async served(line, request) {
    const port = line.includes('--port') ? '' : '--port 0'
    const child = spawn('sh', ['-euc', `exec ${line} ${port}`], {
      ...this.#options,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const late = setTimeout(() => child.kill('SIGKILL'), PROGRAM_MS_MAX)
    const ended = new Promise((resolve) => child.on('close', resolve))
    let output = ''
    child.stderr.setEncoding('utf8').on('data', (text) => (output += text))
    const url = await new Promise((resolve) => {
      void ended.then(() => resolve(undefined)) // resolves by 'close', never rejected
      child.stdout.setEncoding('utf8').on('data', (text) => {
        output += text
        const address = /http:\/\/\S+/.exec(output)?.[0]
        if (output.includes('\n') && address !== undefined) resolve(address)
      })
    })
    let printed = ''
    try {
      assert.ok(url, `${line}\n${output}`)
      if (request === undefined) assert.equal((await fetch(url)).status, 200)
      else printed = this.typed(`${request.replace(/http:\/\/[^/\s]+/, new URL(url).origin)} --silent`)
    } finally {
      child.kill('SIGINT')
      clearTimeout(late)
      assert.equal(await ended, 0, `${line}\n${output}`)
    }
    return printed
  }
}
