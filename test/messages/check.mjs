/**
 * A row of the table of mistakes, and its check.
 *
 * The message of a row is exact, with its parts marked: `{{what|"worker"}}` is the name that is wrong,
 * `{{where|routes['/a']}}` its location, `{{received|"3000"}}` the value, `{{remedy|...}}` what to do.
 * `<n>` is any number, `<file>` the row's own file, `<any>` anything on one line. A row without `where` has
 * its location in the stack: a frame of its own file. A row whose mistake is not a value has `state`
 * instead of `received`: what the mistake depends on.
 */
import assert from 'node:assert/strict'

/**
 * @typedef {object} Mistake
 * @property {string} mistake Its name.
 * @property {() => unknown} make Makes it, as a user would.
 * @property {string | number} [code] The code of the error, or the exit code of the command; absent for an
 *   error of the engine or of a web standard.
 * @property {string} [message] The message, with its parts marked.
 * @property {string} [state] Why there is no received value in the message.
 * @property {unknown} [observed] What happens instead of an error; then `why` has the reason.
 * @property {string} [why]
 */

const PART = /\{\{([a-z+]+)\|(.*?)\}\}/gs
const PARTS = ['what', 'where', 'received', 'remedy']
const TOKENS = { '<n>': '\\d+', '<any>': '.*?' }

/**
 * @param {Mistake} row
 * @param {string} file URL of the module that has the row.
 */
export async function check(row, file) {
  const { isThrown, value } = await outcome(row.make)
  if ('observed' in row) {
    assert.ok(row.why.length > 20, 'a row without an error has a reason')
    assert.ok(!isThrown, `throws ${String(value)}`)
    return assert.deepEqual(value, row.observed)
  }
  assert.ok(isThrown, `returns ${JSON.stringify(value)}`)
  assert.match(value.message, patternOf(row.message, file))
  assert.equal(value.code, row.code, value.message)
  checkParts(row, value, file)
}

async function outcome(make) {
  try {
    return { isThrown: false, value: await make() }
  } catch (error) {
    return { isThrown: true, value: error }
  }
}

/** The whole message, as a pattern. */
function patternOf(marked, file) {
  const text = marked.replace(PART, '$2')
  const pieces = text.split(/(<n>|<any>|<file>)/).map((piece) => {
    return TOKENS[piece] ?? (piece === '<file>' ? file : piece).replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')
  })
  return new RegExp(`^${pieces.join('')}$`)
}

/** Each message has what is wrong and what to do; its location is in it or in the stack; so is the value. */
function checkParts(row, error, file) {
  const marked = new Set([...row.message.matchAll(PART)].flatMap(([, names]) => names.split('+')))
  for (const name of marked) assert.ok(PARTS.includes(name), `no part is named ${name}`)
  assert.ok(marked.has('what'), 'the name of what is wrong is not marked')
  assert.ok(marked.has('remedy'), 'what to do is not marked')
  assert.ok(marked.has('received') !== (row.state !== undefined), 'either a received value or `state`')
  if (marked.has('where')) return
  const frames = `${file}:`
  assert.ok(String(error.stack).includes(frames), `no frame of ${file} in ${String(error.stack)}`)
}
