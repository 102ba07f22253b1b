/**
 * The program in jest, which runs it in a context of its own.
 * The table of the test reads the line that it prints.
 */
import { test } from '@jest/globals'
import { answers } from './src/program.js'

test('the program', async () => process.stdout.write(`answers: ${await answers()}\n`))
