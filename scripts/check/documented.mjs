/**
 * What the public surface lacks of documentation: functions, classes and constants without a doc comment that
 * has an `@example`, and members that API Extractor marks "(undocumented)".
 *
 * documented.json lists what lacks it today, by entry point; the lists and counts may only shrink.
 */

/** The kinds of API Extractor's model that need an example; types and interfaces need none. */
const KINDS = new Set(['Function', 'Class', 'Variable'])

/**
 * Names without an example. One of the overloads of a function has it for all of them.
 * @param {object} model API Extractor's model of an entry point.
 * @returns {{lacking: string[], names: string[]}} `names`: all that were looked at.
 */
function examplesOf(model) {
  const members = model.members.flatMap(({ members }) => members).filter(({ kind }) => KINDS.has(kind))
  const names = [...new Set(members.map(({ name }) => name))].sort()
  const hasExample = new Set(
    members.filter(({ docComment }) => /\* @example\b/.test(docComment ?? '')).map(({ name }) => name),
  )
  return { names, lacking: names.filter((name) => !hasExample.has(name)) }
}

/**
 * What each entry point lacks.
 * @param {Map<string, {model: object, report: string}>} doors By the names of their reports.
 * @returns {Record<string, {undocumented: number, withoutExample: string[]}>}
 */
export function lackingOf(doors) {
  const examples = new Map([...doors].map(([door, { model }]) => [door, examplesOf(model)]))
  const elsewhere = new Set([...examples].flatMap(([door, { names }]) => (door === 'index' ? [] : names)))
  const entries = [...doors].map(([door, { report }]) => {
    const { lacking } = examples.get(door)
    const undocumented = report.split('(undocumented)').length - 1
    // The root exports again what the other doors do.
    const own = door === 'index' ? lacking.filter((name) => !elsewhere.has(name)) : lacking
    return [door, { undocumented, withoutExample: own }]
  })
  return Object.fromEntries(entries)
}

/**
 * Findings as sentences; none where no more is lacking than is listed.
 * @param {ReturnType<typeof lackingOf>} lacking
 * @param {ReturnType<typeof lackingOf>} listed
 */
export function undocumented(lacking, listed) {
  return Object.entries(lacking).flatMap(([door, { undocumented, withoutExample }]) => {
    const most = listed[door] ?? { undocumented: 0, withoutExample: [] }
    const added = withoutExample.filter((name) => !most.withoutExample.includes(name))
    const findings = added.map((name) => `api/${door}.api.md: ${name} needs a doc comment with an @example`)
    if (undocumented > most.undocumented)
      findings.push(
        `api/${door}.api.md: "(undocumented)" occurs ${undocumented} times, at most ${most.undocumented}`,
      )
    return findings
  })
}
