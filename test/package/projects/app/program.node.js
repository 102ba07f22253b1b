/**
 * The program in Node's own runner, which starts a process for this file.
 * The table of the test reads the line that it prints.
 */
import { test } from 'node:test'
import { answers } from './src/program.js'

test('the program', async () => console.log(`answers: ${await answers()}`))
