/**
 * Functions fit on a screen, exports say what they do and throw, and `any` stays where the engine is touched.
 *
 * "Throws" is what stands in the function's own body: what a called function throws is documented there. A
 * broken invariant (AssertionFailure) is a bug and belongs in no `@throws`.
 */
import { docBefore, IS_TEST, isFunction, scriptsOf, walk } from '../source.mjs'
import { ANY_ALLOWED, FUNCTION_LINES_MAX } from '../table.mjs'

/** @param {{sources: import('../source.mjs').Source[]}} tree */
export function functionSizes(tree) {
  return scriptsOf(tree).flatMap((source) => {
    const found = []
    walk(source.tree.program, (node, parent) => {
      if (!isFunction(node) || isSuite(parent)) return
      const line = source.lineAt(node.start)
      const lines = source.lineAt(node.end) - line + 1
      if (lines <= FUNCTION_LINES_MAX) return
      const subject = nameOf(node, parent)
      const message = `${subject} has ${lines} lines; at most ${FUNCTION_LINES_MAX}`
      found.push({ path: source.path, line, subject, message })
    })
    return found
  })
}

/** `describe('…', () => {…})` is a chapter, not a function. */
function isSuite(parent) {
  return parent?.type === 'CallExpression' && /^(describe|suite)$/.test(parent.callee.name ?? '')
}

function nameOf(node, parent) {
  const named = node.id ?? parent?.key ?? parent?.id ?? parent?.left
  return (
    named?.name ??
    (parent?.type === 'CallExpression' ? `a function given to ${calleeName(parent)}` : 'a function')
  )
}

function calleeName(call) {
  const label = call.arguments[0]?.type === 'Literal' ? ` ${JSON.stringify(call.arguments[0].value)}` : ''
  return (call.callee.name ?? call.callee.property?.name ?? 'a call') + label
}

/**
 * Exports without a comment, and comments that keep quiet about a throw.
 * @param {{sources: import('../source.mjs').Source[]}} tree
 */
export function exportDocs(tree) {
  const wanted = scriptsOf(tree).filter(({ path }) => /^(src|scripts)\//.test(path) && !IS_TEST.test(path))
  return wanted.flatMap((source) => exportsOf(source).flatMap((found) => docFindings(source, found)))
}

/** What a file exports by declaring it: `{name, node, start}`, where start is where a comment must end. */
function exportsOf(source) {
  const { body } = source.tree.program
  const local = new Map(body.flatMap((statement) => declared(statement).map((found) => [found.name, found])))
  return body.flatMap((statement) => {
    if (statement.type === 'ExportDefaultDeclaration') {
      return [{ name: 'default', node: statement.declaration, start: statement.start }]
    }
    if (statement.type !== 'ExportNamedDeclaration' || statement.source) return []
    if (statement.declaration) return declared(statement.declaration, groupStart(source, body, statement))
    return statement.specifiers.flatMap(({ local: { name } }) => local.get(name) ?? [])
  })
}

/** Constants written line under line share the comment of the first. */
function groupStart(source, body, statement) {
  const before = body[body.indexOf(statement) - 1]
  const both = [before, statement].every((one) => one?.declaration?.type === 'VariableDeclaration')
  const isNext = both && source.lineAt(before.end) + 1 === source.lineAt(statement.start)
  return isNext ? groupStart(source, body, before) : statement.start
}

function declared(node, start = node.start) {
  if (node.type === 'VariableDeclaration') {
    return node.declarations.flatMap(({ id, init }) =>
      id.type === 'Identifier' ? [{ name: id.name, node: init ?? id, start }] : [],
    )
  }
  return node.id?.type === 'Identifier' ? [{ name: node.id.name, node, start }] : []
}

function docFindings(source, { name, node, start }) {
  const doc = docBefore(source, start)
  const at = { path: source.path, line: source.lineAt(start), subject: name }
  const overload =
    source.text.slice(0, start).includes(`function ${name}(`) ||
    source.text.slice(0, start).includes(`function ${name}<`)
  if (doc === '' && overload) return []
  if (doc === '') return [{ ...at, message: `the export ${name} has no documentation comment` }]
  const inside = /^Class(Declaration|Expression)$/.test(node.type) ? methodFindings(source, name, node) : []
  if (isFunction(node) && throwsItself(node) && !doc.includes('@throws')) {
    return [{ ...at, message: `${name} throws and its comment has no @throws` }, ...inside]
  }
  return inside
}

function methodFindings(source, className, node) {
  return node.body.body.flatMap((member) => {
    const isPrivate =
      member.key?.type === 'PrivateIdentifier' || /^(private|protected)$/.test(member.accessibility ?? '')
    if (isPrivate || !member.value || !isFunction(member.value) || !throwsItself(member.value)) return []
    if (docBefore(source, member.start).includes('@throws')) return []
    const subject = `${className}.${member.key.name ?? member.key.value ?? 'member'}`
    const message = `${subject} throws and has no comment with @throws`
    return [{ path: source.path, line: source.lineAt(member.start), subject, message }]
  })
}

function throwsItself(fn) {
  let found = false
  walk(fn.body, (node) => {
    if (isFunction(node)) return false
    if (node.type === 'ThrowStatement' && node.argument.callee?.name !== 'AssertionFailure') found = true
  })
  return found
}

/** @param {{sources: import('../source.mjs').Source[]}} tree */
export function anyTypes(tree) {
  const wanted = scriptsOf(tree).filter(
    ({ path }) => path.startsWith('src/') && !ANY_ALLOWED.some((folder) => path.startsWith(folder)),
  )
  return wanted.flatMap((source) => {
    const found = []
    walk(source.tree.program, (node) => {
      if (node.type !== 'TSAnyKeyword') return
      const line = source.lineAt(node.start)
      found.push({
        path: source.path,
        line,
        subject: 'any',
        message: '`any` outside src/native: say what it is, or `unknown`',
      })
    })
    return found
  })
}
