/**
 * Shows which worker has responded.
 * Each has its own instance of the app.
 */
import { threadId } from 'node:worker_threads'
import { defineEventHandler, setHeader } from 'h3'

export default defineEventHandler((event) => setHeader(event, 'x-worker', threadId))
