/**
 * How a script ends early: with one sentence for the person at the terminal.
 *
 * A `Stop` is printed without its stack, because nothing is wrong with the script; any other error is a bug
 * in the scripts and is printed whole.
 */

/** The reason to stop, as the sentence to print. */
export class Stop extends Error {
  /** @param {string} sentence What is wrong and what to do. */
  constructor(sentence) {
    super(sentence)
    this.name = 'Stop'
  }
}
