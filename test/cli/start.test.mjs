/**
 * What `npm start` does once everything is built: the address, commands to try, and an end that a shell takes
 * for a good one.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { connect, createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { test } from 'node:test'
import { inRoot } from '../../scripts/set-up/index.mjs'
import { withoutNotices } from './corespun.mjs'

const main = JSON.stringify(inRoot('scripts/start/main.mjs'))
const program = `import(${main}).then(({ serveExample }) => serveExample(process.argv.slice(1)))`
/** The same as in a terminal, as far as it asks. */
const inTerminal = `process.stderr.isTTY = true\n${program}`

/** Start it; stopped by a signal when it has printed `last`. */
function started(words, last, signal = 'SIGINT') {
  const args = ['-e', program, '--', ...words]
  const child = spawn(process.execPath, args, { cwd: inRoot(), stdio: ['ignore', 'pipe', 'pipe'] })
  let [out, err, isStopped] = ['', '', false]
  child.stderr.setEncoding('utf8').on('data', (text) => (err += text))
  child.stdout.setEncoding('utf8').on('data', (text) => {
    out += text
    if (isStopped || !out.includes(last)) return
    isStopped = true
    child.kill(signal)
  })
  return new Promise((resolve) =>
    child.on('close', (code) => resolve({ code, out, err: withoutNotices(err) })),
  )
}

test('npm start prints the address and what to try', { timeout: 120_000 }, async () => {
  const { code, out, err } = await started(['--port', '0'], 'npm run compare')
  assert.deepEqual([code, err], [0, ''], out)
  assert.match(out, /Open {2}http:\/\/127\.0\.0\.1:\d+\n/)
  assert.equal(out.match(/^ {2}(curl|npx) /gm).length, 3)
})

test('a signal ends it at once and well', { timeout: 60_000 }, async () => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    const { code, out, err } = await started(['--port', '0'], 'Open', signal)
    assert.deepEqual([code, err], [0, ''], out)
    const [url] = /http:\S+/.exec(out)
    await assert.rejects(fetch(url), 'the server has ended as well')
  }
})

test('Ctrl-C with an open request is explained, a second one is at once', { timeout: 120_000 }, async () => {
  // Only the second one ends it: the open request is waited for longer than the test may take.
  const args = ['-e', inTerminal, '--', '--port', '0', '--drain', '10m']
  const child = spawn(process.execPath, args, { cwd: inRoot(), stdio: ['ignore', 'pipe', 'pipe'] })
  const closed = new Promise((resolve) => child.on('close', resolve))
  const [out, err] = [child.stdout, child.stderr].map((stream) => outputOf(stream))
  const { hostname, port } = new URL((await out(/Open +(http:\S+)/))[1])
  const upload = connect(Number(port), hostname)
  upload.on('error', () => {})
  const begun = 'POST /api/score HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\nexpect: 100-continue\r\n\r\n'
  upload.write(begun)
  await new Promise((resolve) => upload.once('data', resolve))
  child.kill('SIGINT')
  await err(/^\ncorespun: finishing open requests; press Ctrl-C again to stop at once\n$/)
  await new Promise((done) => setTimeout(done, 400)) // one that comes sooner is an echo of the first
  assert.equal(child.exitCode, null)
  child.kill('SIGINT')
  assert.equal(await closed, 0)
  upload.destroy()
})

/** Collects the text of a stream; returns a function that waits until all of it matches. */
function outputOf(stream) {
  let text = ''
  stream.setEncoding('utf8').on('data', (piece) => (text += piece))
  return async (pattern) => {
    while (!pattern.test(text) && !stream.readableEnded)
      await new Promise((resolve) => stream.once('data', resolve).once('end', resolve))
    assert.match(text, pattern)
    return pattern.exec(text)
  }
}

test('npm start on a port in use explains how to take another', { timeout: 60_000 }, async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await new Promise((done) => other.once('listening', done))
  const { port } = other.address()
  for (const words of [['--port', String(port)], [`--port=${port}`], ['-p', String(port)], [`-p${port}`]]) {
    const { code, out, err } = await started(words, 'never')
    assert.deepEqual([code, out], [2, ''])
    assert.match(err, /address already in use: .*\n/)
    if (port < 65_535) assert.ok(err.endsWith(`another port: npm start -- --port ${port + 1}\n`), err)
  }
  other.close()
})

test('npm start --help explains corespun serve', { timeout: 60_000 }, async () => {
  for (const word of ['--help', '-h']) {
    const { code, out, err } = await started([word], 'never')
    assert.deepEqual([code, err], [0, ''])
    assert.match(out, /corespun serve/)
    assert.match(out, /--workers/)
  }
})

const hasIPv6 = Object.values(networkInterfaces()).some((all) => all.some(({ address }) => address === '::1'))

test('npm start on an address of IPv6 prints it', { timeout: 60_000, skip: !hasIPv6 }, async () => {
  const { code, out, err } = await started(['--port', '0', '--host', '::1'], 'npm run compare')
  assert.deepEqual([code, err], [0, ''], out)
  assert.match(out, /Open {2}http:\/\/\[::1\]:\d+\n/)
})

test('npm start with words that are wrong has no hint of ports', { timeout: 60_000 }, async () => {
  const { code, out, err } = await started(['--wrong'], 'never')
  assert.deepEqual([code, out], [2, ''])
  assert.match(err, /--wrong/)
  assert.doesNotMatch(err, /another port/)
})
