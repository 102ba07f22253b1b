/**
 * What the public surface lacks of documentation: functions, classes and constants without a doc comment that
 * has an `@example`, and members that API Extractor marks "(undocumented)".
 */

/** The kinds of API Extractor's model that need an example; types and interfaces need none. */
const KINDS = new Set(['Function', 'Class', 'Variable'])

/** What needs an example, and what has one. An overload of a function has it for all of them. */
function examplesOf({ members: entryPoints }) {
  const members = entryPoints.flatMap(({ members }) => members).filter(({ kind }) => KINDS.has(kind))
  const namesOf = (list) => new Set(list.map(({ name }) => name))
  const withExample = members.filter(({ docComment }) => /\* @example\b/.test(docComment ?? ''))
  return { names: namesOf(members), documented: namesOf(withExample) }
}

/**
 * Findings as sentences.
 * @param {Map<string, {model: object, report: string}>} doors By the names of their reports.
 */
export function undocumented(doors) {
  const examples = [...doors].map(([door, { model }]) => [door, examplesOf(model)])
  const elsewhere = new Set(examples.flatMap(([door, { names }]) => (door === 'index' ? [] : [...names])))
  return examples.flatMap(([door, { names, documented }]) => {
    // The root exports again what the other doors do.
    const own = [...names].filter((name) => door !== 'index' || !elsewhere.has(name))
    const lacking = own.filter((name) => !documented.has(name)).sort()
    const findings = lacking.map((name) => `api/${door}.api.md: ${name} needs a doc comment with an @example`)
    if (doors.get(door).report.includes('(undocumented)'))
      findings.push(`api/${door}.api.md: a member is "(undocumented)"`)
    return findings
  })
}
