/**
 * The program in vitest, with whatever pool and coverage the command line names.
 * The table of the test reads the line that it prints.
 */
import { test } from 'vitest'
import { answers } from './src/program.js'

test('the program', async () => console.log(`answers: ${await answers()}`))
