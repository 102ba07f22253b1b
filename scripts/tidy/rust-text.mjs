/**
 * Rust as text whose comments and strings are blanked out, so that braces and words can be counted.
 *
 * Not a parser: enough to find functions, `mod` blocks of tests and paths, at the same offsets as in the
 * file.
 */

/** What is blanked: comments, raw strings, strings, characters (not lifetimes). */
const PIECES = new RegExp(
  [
    /\/\/[^\n]*|\/\*[\s\S]*?\*\//,
    /b?r(#*)"[\s\S]*?"\1/,
    /b?"(?:\\[\s\S]|[^"\\])*"/,
    /b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|.)|[^'\\\n])'/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'g',
)

/** Comments, strings and characters replaced by spaces, lines and offsets kept. @param {string} text */
export function blanked(text) {
  return text.replace(PIECES, (piece) => piece.replace(/[^\n]/g, ' '))
}

/**
 * The end of the block whose `{` is at or after an offset: the offset after its `}`.
 * @param {string} code Blanked text.
 * @param {number} from
 */
export function blockEnd(code, from) {
  let depth = 0
  for (let at = code.indexOf('{', from); at < code.length; at += 1) {
    if (code[at] === '{') depth += 1
    if (code[at] === '}') depth -= 1
    if (depth === 0) return at + 1
  }
  return code.length
}

/** Blanked text without its test modules and test functions. @param {string} text */
export function withoutTests(text) {
  let code = blanked(text)
  const test = /#\[(cfg\((all\()?test\b[^\]]*|test)\]/g
  for (let found = test.exec(code); found !== null; found = test.exec(code)) {
    const rest = code.slice(found.index)
    const semicolon = rest.indexOf(';')
    const brace = rest.indexOf('{')
    const end =
      semicolon !== -1 && (brace === -1 || semicolon < brace)
        ? found.index + semicolon + 1
        : blockEnd(code, found.index)
    code = code.slice(0, found.index) + code.slice(found.index, end).replace(/[^\n]/g, ' ') + code.slice(end)
  }
  return code
}

/**
 * Functions with a body: name, offset of `fn`, offset after the body.
 * @param {string} code Blanked text.
 */
export function functionsOf(code) {
  const found = []
  for (const match of code.matchAll(/\bfn\s+(\w+)/g)) {
    const rest = code.slice(match.index)
    const brace = rest.indexOf('{')
    const semicolon = declarationEnd(rest)
    if (brace === -1 || (semicolon !== -1 && semicolon < brace)) continue // a signature only
    found.push({ name: match[1], start: match.index, end: blockEnd(code, match.index) })
  }
  return found
}

/** The `;` that ends a signature; those inside `[u8; 4]` do not. */
function declarationEnd(rest) {
  let depth = 0
  for (let at = 0; at < rest.length; at += 1) {
    if (rest[at] === '[' || rest[at] === '(') depth += 1
    if (rest[at] === ']' || rest[at] === ')') depth -= 1
    if (rest[at] === '{') return -1
    if (rest[at] === ';' && depth === 0) return at
  }
  return -1
}
