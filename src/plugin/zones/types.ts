/**
 * Types that a module's author wrote, as far as they state that a variable holds a zone.
 *
 * TypeScript leaves blanks where types were erased, so the text behind a name is its type if it is blank in
 * the code that was parsed. JavaScript has the same in JSDoc. Types that only a compiler could follow (an
 * interface, an alias, what a function returns) are not followed.
 */

/** Texts between a comment and what it describes are not longer. */
const HEAD_CHARACTERS_MAX = 200

const MODULE = String.raw`(['"])corespun(?:\/zone)?\k<quote>`.replace('(', '(?<quote>')
const IMPORTS = new RegExp(String.raw`\bimport\s+(?:type\s+)?\{([^}]*)\}\s*from\s*${MODULE}`, 'g')
const TYPEDEF = new RegExp(String.raw`@typedef\s+\{\s*import\(${MODULE}\)\.(?:Any)?Zone\s*\}\s+([\w$]+)`, 'g')
const IMPORTED = String.raw`import\(\s*(?:'corespun(?:\/zone)?'|"corespun(?:\/zone)?")\s*\)\.(?:Any)?Zone`

/** What may be between a JSDoc comment and the function that it describes. */
const FUNCTION_HEAD = new RegExp(
  String.raw`^\s*(?:export\s+)?(?:default\s+)?(?:static\s+)?(?:(?:const|let|var)\s+[\w$]+\s*=\s*)?` +
    String.raw`(?:async\s+)?(?:[#\w$]+\s*[=:]?\s*)?(?:async\s+)?$`,
)
/** The same for a variable, a parameter, a field or a cast. */
const NAME_HEAD = /^\s*(?:export\s+)?(?:(?:const|let|var)\s+|static\s+|\(\s*)?$/

/** The types of one module. */
export class ZoneTypes {
  readonly #original: string
  readonly #code: string
  /** A type, as the whole text. */
  readonly #type: RegExp
  /** A type behind a name. */
  readonly #annotation: RegExp

  /**
   * @param original The module as it was written.
   * @param code The same without types, at the same positions.
   */
  constructor(original: string, code: string) {
    this.#original = original.length === code.length ? original : code
    this.#code = code
    const one = `(?:${[...typeNames(original), IMPORTED].join('|')})`
    const all = String.raw`(?:${one}|undefined|null)`
    const union = String.raw`(?:${all}\s*\|\s*)*${one}(?:\s*\|\s*${all})*`
    this.#type = new RegExp(`^\\s*${union}\\s*$`)
    this.#annotation = new RegExp(
      String.raw`\s*(?:[?!]?\s*:|as\b|satisfies\b)\s*${union}(?![\w$]|\s*[[.<|&])`,
      'y',
    )
  }

  /** Whether the name or expression that ends at `end` has the type of a zone behind it. */
  isAnnotated(end: number): boolean {
    this.#annotation.lastIndex = end
    const found = this.#annotation.exec(this.#original)
    return found !== null && this.#code.slice(end, end + found[0].length).trim() === ''
  }

  /** Whether the comment before `start` is `@type` with the type of a zone. */
  isDocumented(start: number): boolean {
    const comment = this.#commentBefore(start, NAME_HEAD)
    return this.#type.test(/@type\s+\{([^}]*)\}/.exec(comment)?.[1] ?? '')
  }

  /** Whether the comment before the function that starts at `start` has such a `@param`. */
  isDocumentedParameter(start: number, name: string): boolean {
    const params = this.#commentBefore(start, FUNCTION_HEAD).matchAll(/@param\s+\{([^}]*)\}\s+\[?([\w$]+)/g)
    return [...params].some(([, type, param]) => param === name && this.#type.test(type))
  }

  #commentBefore(start: number, head: RegExp): string {
    const end = this.#code.lastIndexOf('*/', start)
    if (end === -1 || start - end > HEAD_CHARACTERS_MAX || !head.test(this.#code.slice(end + 2, start)))
      return ''
    return this.#code.slice(Math.max(0, this.#code.lastIndexOf('/**', end)), end)
  }
}

/** Under which names a module has the types of zones. */
function typeNames(text: string): string[] {
  const imported = [...text.matchAll(IMPORTS)].flatMap(([, list]) =>
    list.split(',').flatMap((each) => {
      const [, name, local] = /^\s*(?:type\s+)?(\w+)(?:\s+as\s+([\w$]+))?\s*$/.exec(each) ?? []
      return name === 'Zone' || name === 'AnyZone' ? [local ?? name] : []
    }),
  )
  const defined = [...text.matchAll(TYPEDEF)].map((found) => found.at(-1) as string)
  return [...imported, ...defined].map((name) => name.replaceAll('$', '\\$'))
}
