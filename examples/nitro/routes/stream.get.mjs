/**
 * A response whose first part is sent before the second one is made.
 * What is streamed is not cached.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { defineEventHandler, sendStream } from 'h3'

async function* parts() {
  yield 'early'
  await pause(300)
  yield 'late'
}

export default defineEventHandler((event) =>
  sendStream(event, ReadableStream.from(parts()).pipeThrough(new TextEncoderStream())),
)
