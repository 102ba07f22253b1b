/**
 * Score a source file: its size, its complexity, and how hard it will be to change.
 *
 * An arrow of three stages: read here, then parse and analyse in a zone, in one hop, since they cost
 * processor time. Scores of earlier texts come from a store. The same stages are plain functions below.
 *
 *   npx corespun run examples/service/pipeline.ts#score 'src/**' > scores.ndjson
 *
 * TypeScript is scored after its types are erased, which keeps all positions. A file in neither language is a
 * result too (`parsed: false`, with the position of the error); only a file that cannot be read is a failure.
 * Over 400 lines: a pipeline is read as one file.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { parse, type Node, type Options, type Token } from 'acorn'
import { type Arrow, effect, exported, lift } from 'corespun/arrow'
import { store } from 'corespun/store'
import { type AnyZone, zone } from 'corespun/zone'

/** A function of the file, or the code outside all functions. */
export interface FunctionScore {
  /** Its own name, or that of the variable or property it is bound to; else `(anonymous)`. */
  readonly name: string
  readonly line: number
  /** Its own lines, without those of nested functions. */
  readonly lines: number
  /** Paths through it: 1, and 1 more for each branch, loop, case, `&&`, `||` and `??`. */
  readonly cyclomatic: number
  /** Deepest nesting of branches, loops and `try`. */
  readonly nesting: number
}

/** The score of a file that parses. */
export interface FileScore {
  readonly path: string
  readonly parsed: true
  readonly lines: number
  /** Lines with code on them. */
  readonly codeLines: number
  /** Share of the file's lines that hold a comment, 0 to 1. */
  readonly commentRatio: number
  readonly functions: number
  /** Mean cyclomatic complexity of the functions. */
  readonly cyclomaticMean: number
  readonly nestingMax: number
  /** The function with the most paths. */
  readonly mostTangled: FunctionScore
  /** The function with the most lines. */
  readonly longest: FunctionScore
  /** Halstead's volume: bits needed to write down the file's operators and operands. */
  readonly volume: number
  /** The maintainability index, from 0 (nobody dares) to 100 (a pleasure). */
  readonly maintainability: number
  readonly grade: 'A' | 'B' | 'C' | 'D'
}

/** A file that is neither JavaScript nor TypeScript, and the position of its first error. */
export interface ParseProblem {
  readonly path: string
  readonly parsed: false
  readonly problem: string
  readonly line: number
  readonly column: number
}

export type Score = FileScore | ParseProblem

/** A file that has been read. */
interface Text {
  readonly path: string
  readonly text: string
}

/**
 * The arrow from a path to its score; fails with the error of the file system.
 * @param on The zone that parses and analyses.
 */
export function scoring(on: AnyZone): Arrow<string, Score, Error, 'async'> {
  const scores = store.getOrCreate<Score>('scores', { entriesMax: 100_000 })
  // Both use the rest of this module, so workers import it instead of receiving copies of the functions.
  const [parsing, analysing] = [exported(import.meta.url, parsed), exported(import.meta.url, analyse)]
  const analysed = lift(parsing).andThen(lift(analysing)).named('parse and analyse').on(on)
  return effect(read, (thrown) => thrown as Error).andThen(analysed.through(scores, keyOf))
}

/** The arrow for this thread's zone: in a worker, that worker's own. */
export const score = scoring(zone.current)

/**
 * Read, parse and score one file, without arrows.
 * @throws {Error} of the file system, when the file cannot be read.
 */
export function scoreFile(path: string): Score {
  return analyse(parsed(read(path)))
}

/** Score the text of a file; `path` provides the extension and appears in the result. */
export function scoreText(path: string, text: string): Score {
  return analyse(parsed({ path, text }))
}

function read(path: string): Text {
  return { path, text: readFileSync(path, 'utf8') }
}

function keyOf({ path, text }: Text): string {
  return `${path} ${createHash('sha1').update(text).digest('base64')}`
}

/** First stage in the zone: the syntax tree, or the position of the first error. */
export function parsed({ path, text }: Text): Source | ParseProblem {
  return parseSource(path, text)
}

/** Second stage in the zone: the score. */
export function analyse(source: Source | ParseProblem): Score {
  if ('problem' in source) return source
  return { path: source.path, parsed: true, ...graded(measured(source)) }
}

/** A parsed text, with counts of its lines and tokens. */
interface Source {
  readonly path: string
  readonly tree: Node
  readonly lines: number
  readonly codeLines: number
  readonly commentLines: number
  readonly tokens: TokenCounts
}

interface TokenCounts {
  readonly operatorKinds: number
  readonly operators: number
  readonly operandKinds: number
  readonly operands: number
}

function parseSource(path: string, written: string): Source | ParseProblem {
  const text = /\.[cm]?ts$/.test(path) ? withoutTypes(path, written) : written
  if (typeof text !== 'string') return text
  const kinds =
    /\.m[jt]s$/.test(path) || /^[^\S\r\n]*(?:import|export)\b/m.test(text) ? modulesFirst : scriptsFirst
  let problem: unknown
  for (const sourceType of kinds) {
    try {
      return parseAs(sourceType, path, text)
    } catch (thrown) {
      problem ??= thrown
    }
  }
  if (!(problem instanceof SyntaxError)) throw problem
  const { line, column } = (problem as SyntaxError & { loc: { line: number; column: number } }).loc
  return { path, parsed: false, problem: problem.message.replace(/ \(\d+:\d+\)$/, ''), line, column }
}

/** The type eraser that Node uses, for any version of Node; loaded when the first file needs it. */
type Eraser = typeof import('@swc/wasm-typescript')
const ERASER = '@swc/wasm-typescript'
const load = createRequire(import.meta.url)
let eraser: Eraser | undefined

/** The text with its types replaced by spaces. */
function withoutTypes(path: string, text: string): string | ParseProblem {
  eraser ??= load(ERASER) as Eraser
  try {
    return eraser.transformSync(text, { mode: 'strip-only', filename: path }).code
  } catch (thrown) {
    const problem = { path, parsed: false as const, line: 1, column: 0 }
    // The eraser throws plain objects. An Error means that WebAssembly's stack overflowed: drop the instance.
    if (thrown instanceof Error) {
      eraser = undefined
      delete load.cache[load.resolve(ERASER)]
      return { ...problem, problem: 'Not enough stack space to erase types' }
    }
    const { message, startLine: line, startColumn: column } = thrown as Readonly<Record<string, unknown>>
    return { ...problem, problem: String(message), line: Number(line), column: Number(column) }
  }
}

type SourceType = NonNullable<Options['sourceType']>
const modulesFirst: readonly SourceType[] = ['module', 'script']
const scriptsFirst: readonly SourceType[] = ['script', 'module']

function parseAs(sourceType: SourceType, path: string, text: string): Source {
  const tokens = new TokenCounter()
  const comments = new LineSet()
  const tree = parse(text, {
    ecmaVersion: 'latest',
    sourceType,
    locations: true,
    allowHashBang: true,
    // A CommonJS file is the body of a function.
    allowReturnOutsideFunction: sourceType === 'script',
    onToken: (token) => tokens.add(token),
    onComment: (_isBlock, _text, _start, _end, from, to) => comments.add(from?.line ?? 1, to?.line ?? 1),
  })
  const lines = text === '' ? 0 : text.split('\n').length - (text.endsWith('\n') ? 1 : 0)
  const counts = { codeLines: tokens.lines.count, commentLines: comments.count, tokens: tokens.counts() }
  return { path, tree, lines, ...counts }
}

/** Counts lines that are added in ascending order, each once. */
class LineSet {
  #last = 0
  count = 0

  add(from: number, to: number): void {
    const first = Math.max(from, this.#last + 1)
    if (to < first) return
    this.count += to - first + 1
    this.#last = to
  }
}

/** A token with its value, which acorn's types omit. */
type ValuedToken = Token & { readonly value?: unknown }

/** Counts tokens as Halstead does: operators (with keywords and brackets) and operands. */
class TokenCounter {
  readonly lines = new LineSet()
  readonly #operators = new Set<string>()
  readonly #operands = new Set<string>()
  #operatorCount = 0
  #operandCount = 0

  add(token: ValuedToken): void {
    const { label } = token.type
    if (label === 'eof') return
    this.lines.add(token.loc?.start.line ?? 1, token.loc?.end.line ?? 1)
    if (operandLabels.has(label)) {
      this.#operandCount++
      this.#operands.add(`${label} ${String(token.value)}`)
    } else {
      this.#operatorCount++
      this.#operators.add(token.value === undefined ? label : `${label} ${String(token.value)}`)
    }
  }

  counts(): TokenCounts {
    return {
      operatorKinds: this.#operators.size,
      operators: this.#operatorCount,
      operandKinds: this.#operands.size,
      operands: this.#operandCount,
    }
  }
}

const operandLabels: ReadonlySet<string> = new Set([
  ...['name', 'privateId', 'num', 'string', 'template', 'regexp'],
  ...['true', 'false', 'null', 'this', 'super'],
])

interface Measures extends Omit<FileScore, 'path' | 'parsed' | 'maintainability' | 'grade'> {}

function measured(source: Source): Measures {
  const { tokens, lines } = source
  const all = functionsOf(source.tree, lines)
  // Code outside all functions counts as a function only if there is no other.
  const real = all.slice(1)
  const counted = real.length === 0 ? all : real
  const kinds = Math.max(2, tokens.operatorKinds + tokens.operandKinds)
  return {
    lines,
    codeLines: source.codeLines,
    commentRatio: lines === 0 ? 0 : rounded(source.commentLines / lines, 3),
    functions: real.length,
    cyclomaticMean: rounded(counted.reduce((sum, one) => sum + one.cyclomatic, 0) / counted.length, 2),
    nestingMax: all.reduce((most, one) => Math.max(most, one.nesting), 0),
    mostTangled: greatest(counted, (one) => one.cyclomatic),
    longest: greatest(counted, (one) => one.lines),
    volume: Math.round((tokens.operators + tokens.operands) * Math.log2(kinds)),
  }
}

function graded(measures: Measures): Omit<FileScore, 'path' | 'parsed'> {
  // The index of Oman and Hagemeister, on the mean function, scaled to 0..100 as Visual Studio does.
  const share = Math.max(1, measures.functions)
  const volume = Math.max(1, measures.volume / share)
  const lines = Math.max(1, measures.codeLines / share)
  const raw = 171 - 5.2 * Math.log(volume) - 0.23 * measures.cyclomaticMean - 16.2 * Math.log(lines)
  const maintainability = rounded(Math.min(100, Math.max(0, (raw * 100) / 171)), 1)
  return { ...measures, maintainability, grade: gradeOf(maintainability, measures.mostTangled.cyclomatic) }
}

function gradeOf(maintainability: number, cyclomaticMax: number): FileScore['grade'] {
  if (maintainability >= 60 && cyclomaticMax <= 10) return 'A'
  if (maintainability >= 45 && cyclomaticMax <= 20) return 'B'
  return maintainability >= 25 && cyclomaticMax <= 50 ? 'C' : 'D'
}

/** A function during the walk of the tree. */
interface OpenFunction {
  readonly name: string
  readonly line: number
  lines: number
  cyclomatic: number
  nesting: number
}

/** A node to visit, with its context. */
interface Visit {
  readonly node: Node
  readonly within: OpenFunction
  readonly depth: number
  readonly boundName: string | undefined
}

/** All functions of the tree in source order, after the code outside of them. */
function functionsOf(tree: Node, lines: number): OpenFunction[] {
  const outside: OpenFunction = { name: '(file)', line: 1, lines, cyclomatic: 1, nesting: 0 }
  const found: OpenFunction[] = []
  // An explicit stack: bundles nest deeper than a thread's call stack allows.
  const stack: Visit[] = [{ node: tree, within: outside, depth: 0, boundName: undefined }]
  for (let visit = stack.pop(); visit !== undefined; visit = stack.pop()) {
    const { node } = visit
    let { within, depth } = visit
    if (functionTypes.has(node.type)) {
      within = opened(node, visit.boundName)
      depth = 0
      found.push(within)
      // Its first line also counts as a line of the enclosing function.
      visit.within.lines = Math.max(1, visit.within.lines - within.lines + 1)
    } else {
      within.cyclomatic += branchesOf(node)
      if (nestingTypes.has(node.type) && !isElseIf(visit)) within.nesting = Math.max(within.nesting, ++depth)
    }
    pushChildren(stack, node, within, depth)
  }
  return [outside, ...found.sort((one, other) => one.line - other.line)]
}

const functionTypes: ReadonlySet<string> = new Set([
  'FunctionDeclaration',
  'FunctionExpression',
  'ArrowFunctionExpression',
])

const nestingTypes: ReadonlySet<string> = new Set([
  ...['IfStatement', 'SwitchStatement', 'TryStatement'],
  ...['ForStatement', 'ForInStatement', 'ForOfStatement', 'WhileStatement', 'DoWhileStatement'],
])

const branchTypes: ReadonlySet<string> = new Set([
  ...['IfStatement', 'ConditionalExpression', 'CatchClause'],
  ...['ForStatement', 'ForInStatement', 'ForOfStatement', 'WhileStatement', 'DoWhileStatement'],
])

/** The fields that are read here, of all kinds of nodes. */
interface AnyNode extends Node {
  readonly test?: Node | null
  readonly operator?: string
  readonly id?: { readonly name?: string } | null
  readonly key?: { readonly name?: string; readonly value?: unknown }
  readonly left?: { readonly name?: string; readonly property?: { readonly name?: string } }
}

function branchesOf(node: AnyNode): number {
  if (branchTypes.has(node.type)) return 1
  if (node.type === 'LogicalExpression') return 1
  // A default case is not a branch; `a ||= b` is one.
  if (node.type === 'SwitchCase') return node.test === null ? 0 : 1
  if (node.type === 'AssignmentExpression') return /^(?:&&|\|\||\?\?)=$/.test(node.operator ?? '') ? 1 : 0
  return 0
}

/** `else if` counts as one more branch of the same `if`, not as a nested one. */
function isElseIf({ node, boundName }: Visit): boolean {
  return node.type === 'IfStatement' && boundName === ELSE_IF
}

const ELSE_IF = '(else)'

function opened(node: AnyNode, boundName: string | undefined): OpenFunction {
  const line = node.loc?.start.line ?? 1
  const lines = (node.loc?.end.line ?? line) - line + 1
  return { name: node.id?.name ?? boundName ?? '(anonymous)', line, lines, cyclomatic: 1, nesting: 0 }
}

function pushChildren(stack: Visit[], node: Node, within: OpenFunction, depth: number): void {
  const boundName = boundNameOf(node)
  const fields = node as unknown as Readonly<Record<string, unknown>>
  for (const field in fields) {
    const child = fields[field]
    if (typeof child !== 'object' || child === null || field === 'loc') continue
    if (Array.isArray(child)) {
      for (const one of child as unknown[]) {
        if (isNode(one)) stack.push({ node: one, within, depth, boundName })
      }
    } else if (isNode(child)) {
      const isElse = field === 'alternate' && node.type === 'IfStatement'
      stack.push({ node: child, within, depth, boundName: isElse ? ELSE_IF : boundName })
    }
  }
}

/** The name that a function directly below this node is bound to. */
function boundNameOf(node: AnyNode): string | undefined {
  switch (node.type) {
    case 'VariableDeclarator':
      return node.id?.name
    case 'MethodDefinition':
    case 'PropertyDefinition':
    case 'Property':
      return node.key?.name ?? (node.key?.value === undefined ? undefined : String(node.key.value))
    case 'AssignmentExpression':
      return node.left?.name ?? node.left?.property?.name
    default:
      return undefined
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string'
}

function greatest(all: readonly OpenFunction[], by: (one: OpenFunction) => number): FunctionScore {
  const first = all[0]
  const most = all.reduce((best, one) => (by(one) > by(best) ? one : best), first)
  const { name, line, lines, cyclomatic, nesting } = most
  return { name, line, lines, cyclomatic, nesting }
}

function rounded(value: number, digits: number): number {
  const scale = 10 ** digits
  return Math.round(value * scale) / scale
}
