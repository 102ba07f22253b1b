/**
 * The program by itself, and the entry of the bundle.
 * It prints one line, what the functions return.
 */
import { answers } from './program.js'

console.log(await answers())
