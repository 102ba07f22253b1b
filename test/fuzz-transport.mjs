/**
 * Throws damaged and invented frames at the transport, in each mode for `--minutes`, and stops at the first
 * harm.
 *
 * `node test/fuzz-transport.mjs [--minutes 10] [--mode process|self-contained] [--seed 1]`, on the build. The
 * work is done by a thread: one that neither ends nor reports for `SILENCE_S` seconds in which this process
 * ran hangs; while all of it is stopped, nothing is counted. A frame that did harm is printed in hexadecimal
 * and belongs into src/transport/frames/harm.json, where tests keep it for ever. Frames that are read in
 * spite of their damage join the corpus, so damage adds up.
 */
import { parseArgs } from 'node:util'
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads'
import fc from 'fast-check'
import { anyValue } from '../dist/transport/arbitrary.test.support.js'
import { damaged, frameIn, randomFrom, readHostile } from '../dist/transport/hostile.test.support.js'

const SILENCE_S = 20
const CORPUS_MAX = 2000
const RSS_MAX_BYTES = 1.5e9
/** Longest frame of the corpus; twice that is the longest that is tried. */
const CORPUS_FRAME_BYTES_MAX = 5000
const FRAME_BYTES_MAX = 2 * CORPUS_FRAME_BYTES_MAX

if (isMainThread) await main()
else fuzz(workerData)

async function main() {
  const { values: options } = parseArgs({
    options: {
      minutes: { type: 'string', default: '10' },
      mode: { type: 'string' },
      seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    },
  })
  const minutes = Number(options.minutes)
  if (!(minutes > 0)) throw new Error(`--minutes must be a number above 0; received ${options.minutes}`)
  for (const mode of options.mode === undefined ? ['process', 'self-contained'] : [options.mode])
    await supervise({ mode, durationMs: minutes * 60_000, seed: Number(options.seed) })
}

/** Run one thread to its end; fails when it fails, hangs or grows. */
function supervise(order) {
  return new Promise((resolve, reject) => {
    // The frame being read lies in shared memory, so that a frame on which the thread hangs can be printed.
    const current = new Uint8Array(new SharedArrayBuffer(FRAME_BYTES_MAX + 4))
    const thread = new Worker(new URL(import.meta.url), { workerData: { ...order, current } })
    let silentS = 0
    const watch = setInterval(() => {
      silentS++
      if (silentS < SILENCE_S) return
      clearInterval(watch)
      const length = new DataView(current.buffer).getUint32(0)
      console.error(`silent since it read ${Buffer.from(current.slice(4, 4 + length)).toString('hex')}`)
      reject(new Error(`${order.mode}: no report for ${SILENCE_S} s (seed ${order.seed})`))
      void thread.terminate()
    }, 1000)
    thread.on('message', (message) => {
      silentS = 0
      if (message.done) console.log(`${order.mode}: ${message.text}`)
    })
    thread.on('error', reject)
    thread.on('exit', () => {
      clearInterval(watch)
      resolve()
    })
  })
}

function fuzz({ mode, durationMs, seed, current }) {
  const random = randomFrom(seed)
  const corpus = freshFrames(mode, random)
  const end = Date.now() + durationMs
  let tried = 0
  let read = 0
  let reportAt = 0
  while (Date.now() < end) {
    const frame = nextFrame(corpus, random, mode)
    tried++
    new DataView(current.buffer).setUint32(0, frame.length)
    current.set(frame, 4)
    try {
      if (readHostile(frame)) {
        read++
        const index = corpus.length < CORPUS_MAX ? corpus.length : random(CORPUS_MAX)
        if (frame.length < CORPUS_FRAME_BYTES_MAX) corpus[index] = frame
      }
    } catch (error) {
      console.error(`harm done by ${Buffer.from(frame).toString('hex')}`)
      throw error
    }
    if (tried % 64 === 0 && Date.now() > reportAt) {
      reportAt = Date.now() + 2000
      const rss = process.memoryUsage().rss
      if (rss > RSS_MAX_BYTES) throw new Error(`grown to ${rss} bytes after ${tried} frames`)
      parentPort.postMessage({ done: false })
      for (const fresh of freshFrames(mode, random).slice(0, 50)) corpus[random(corpus.length)] = fresh
    }
  }
  const minutes = durationMs / 60_000
  const text = `${tried} frames in ${minutes} minutes, ${read} read although damaged, no harm; seed ${seed}`
  parentPort.postMessage({ done: true, text })
}

function freshFrames(mode, random) {
  const frames = []
  for (const value of fc.sample(anyValue({ mode, moves: true }), {
    seed: random(2 ** 31),
    numRuns: 200,
  })) {
    const frame = frameIn(mode, value)
    if (frame.length < CORPUS_FRAME_BYTES_MAX) frames.push(frame)
  }
  return frames
}

/** A damaged frame of the corpus or, one time in eight, an invented one. */
function nextFrame(corpus, random, mode) {
  if (random(8) > 0) return damaged(corpus[random(corpus.length)], corpus[random(corpus.length)], random)
  const bodyBytes = 1 + random(60)
  const frame = Uint8Array.from({ length: 6 + bodyBytes + random(30) }, () =>
    random(2) === 0 ? random(256) : 0xc0 + random(48),
  )
  frame.set([1, mode === 'process' ? 0 : 1, bodyBytes, 0, 0, 0])
  return frame
}
