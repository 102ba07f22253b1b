/**
 * The JavaScript parser (acorn) and the nodes of its trees.
 *
 * Loaded on first use: threads that only run functions never load it.
 */
import type { parse as Parse } from 'acorn'
import { requireShortened } from '../../base/index.ts'

/** A node of the syntax tree; its further fields depend on `type`. */
export interface SyntaxNode {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

/**
 * Parse a whole script, module or an expression.
 * @throws {SyntaxError} of the parser.
 */
export function parseSource(source: string, sourceType: 'script' | 'module' = 'script'): SyntaxNode {
  const { parse } = requireShortened('acorn.cjs', 'acorn') as { parse: typeof Parse }
  const tree = parse(source, {
    ecmaVersion: 'latest',
    sourceType,
    allowHashBang: true,
    allowReturnOutsideFunction: true,
    allowImportExportEverywhere: true,
    allowSuperOutsideMethod: true,
    checkPrivateFields: false,
  })
  return tree as unknown as SyntaxNode
}
