/**
 * Code blocks of a Markdown document, taken apart.
 *
 * Only fences at the start of a line count. The block's name is the document and the line it begins on, so a
 * failing test points at it.
 */

/**
 * @param {string} path The document, for names.
 * @param {string} text
 * @returns {{name: string, language: string, text: string, output: string | undefined}[]} `output`: what a
 *   `text output` block right after this one contains.
 */
export function blocksIn(path, text) {
  const found = []
  const lines = text.split('\n')
  for (let index = 0; index < lines.length; index += 1) {
    const info = /^```(\S.*)?$/.exec(lines[index])?.[1]
    if (info === undefined) continue
    const end = lines.indexOf('```', index + 1)
    const inside = lines.slice(index + 1, end)
    const name = `${path.replaceAll(/\W+/g, '-')}-${index + 1}`
    if (info === 'text output') found.at(-1).output = joined(inside)
    else found.push({ name, ...programOf(info.split(' ')[0], inside), output: undefined })
    index = end
  }
  return found
}

/** A diff of a program is the program after it. */
function programOf(language, lines) {
  if (language !== 'diff') return { language, text: joined(lines) }
  const after = lines.filter((line) => !line.startsWith('-'))
  return { language: 'ts', text: joined(after.map((line) => line.slice(1))) }
}

const joined = (lines) => `${lines.join('\n')}\n`

/** Whether a page is typed into a project as it is printed. @param {string} name Of the page or a block. */
export function isOfDoor(name) {
  return /^(README|docs.notes-|docs.guide.(start|from)-)/.test(name)
}

/** The file that a program's first line names, as in `// lines.mts`. @param {string} text */
export function nameOf(text) {
  return /^\/\/ ([\w-]+\.mts)\n/.exec(text)?.[1]
}

/**
 * What to do with a line of shell in the documentation.
 * @param {string} line
 * @returns {{kind: 'script' | 'install' | 'serve' | 'curl' | 'run' | 'node' | 'unknown', word: string}}
 *   `word`: the npm script.
 */
export function shellKind(line) {
  const script = /^npm (?:run )?(start|test|[\w:-]+)/.exec(line)?.[1] ?? ''
  if (/^(git clone|cd|npm (install|i|ci|init)|npx degit)\b/.test(line)) return { kind: 'install', word: '' }
  if (/^npm (start|test|run)\b/.test(line)) return { kind: 'script', word: script }
  if (/^npx corespun serve (?!--help)/.test(line)) return { kind: 'serve', word: '' }
  if (line.startsWith('curl http:')) return { kind: 'curl', word: '' }
  if (/\bcorespun\b/.test(line)) return { kind: 'run', word: '' }
  if (/^node [\w-]+\.mts$/.test(line)) return { kind: 'node', word: '' }
  return { kind: 'unknown', word: '' }
}

/**
 * The `ts` blocks that follow an `@example` in the doc comments of a source file.
 * @param {string} path The file, for names.
 * @param {string} text
 * @returns {{name: string, text: string}[]}
 */
export function examplesIn(path, text) {
  const found = []
  const lines = text.split('\n')
  for (let index = 0; index < lines.length; index += 1) {
    if (!/^\s*(\/\*)?\* @example\b/.test(lines[index])) continue
    const isIn = (at) => at < lines.length && !lines[at].includes('*/')
    let from = index + 1
    while (isIn(from) && !/^\s*\* (```|@)/.test(lines[from])) from += 1
    const isOpen = isIn(from) && /^\s*\* ```ts$/.test(lines[from])
    let to = from + 1
    while (isIn(to) && !/^\s*\* ```$/.test(lines[to])) to += 1
    const name = `${path.replaceAll(/\W+/g, '-')}-${index + 1}`
    if (!isOpen || !isIn(to))
      throw new Error(`${path}:${index + 1}: @example without a closed \`\`\`ts block`)
    const content = lines.slice(from + 1, to).map((line) => line.replace(/^\s*\* ?/, ''))
    found.push({ name, text: `${content.join('\n')}\n` })
  }
  return found
}
