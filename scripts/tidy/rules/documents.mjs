/**
 * The documents compared with the repository: folders, versions, measured numbers.
 *
 * A measured number of the README and of docs/numbers.md comes before a mark such as `<!-- record:
 * 2026-11-21-execute-node24.json#rows.0.p50 -->`, which names a file of bench/records and a key in it. The
 * number must be that value, rounded as it is written.
 */

/** The folder list of docs/ARCHITECTURE.md against the folders there are. */
export function folderList(tree) {
  const path = 'docs/ARCHITECTURE.md'
  const text = tree.byPath.get(path)?.text
  if (text === undefined) return [{ path, line: 1, message: 'does not exist' }]
  const listed = listedFolders(text)
  const real = realFolders(tree)
  const at = (line, folder, message) => ({ path, line, message: `${folder} ${message}` })
  const removed = [...listed].filter(([folder]) => !real.has(folder))
  const missing = [...real].filter((folder) => !listed.has(folder))
  return [
    ...removed.map(([folder, line]) => at(line, folder, 'is in the code map and not on the disk')),
    ...missing.map((folder) => at(1, folder, 'is on the disk and not in the code map')),
  ]
}

/** Folders of the block under "Code map": one per line, those inside another one indented by two spaces. */
function listedFolders(text) {
  const found = new Map()
  const lines = text.split('\n')
  const start = lines.findIndex((line) => /^#+ .*code map/i.test(line))
  const open = lines.findIndex((line, index) => index > start && line.startsWith('```'))
  const close = lines.findIndex((line, index) => index > open && line.startsWith('```'))
  let parent = ''
  for (let index = open + 1; start !== -1 && index < close; index += 1) {
    const match = /^(\s*)([\w.-]+(?:\/[\w.-]+)*\/)/.exec(lines[index])
    if (match === null) continue
    if (match[1] === '') parent = match[2]
    found.set(match[1] === '' ? match[2] : parent + match[2], index + 1)
  }
  return found
}

/** Folders of the first level, and of the second inside those that are maps of modules. */
function realFolders(tree) {
  const found = new Set()
  for (const { path } of tree.sources) {
    const parts = path.split('/')
    if (parts.length > 1) found.add(`${parts[0]}/`)
    if (parts.length > 2 && /^(src|crates|test|docs)$/.test(parts[0])) found.add(`${parts[0]}/${parts[1]}/`)
  }
  return found
}

/** One version in package.json and Cargo.toml. */
export function versions(tree) {
  const manifest = JSON.parse(tree.byPath.get('package.json')?.text ?? '{}').version
  const workspace = tree.byPath.get('Cargo.toml')?.text ?? ''
  const cargo = /\[workspace\.package\][^[]*?\nversion = "([^"]+)"/.exec(workspace)?.[1]
  if (manifest === cargo) return []
  const message = `has version ${cargo} and package.json ${manifest}`
  return [{ path: 'Cargo.toml', line: 1, message }]
}

const MARK = /<!-- record: ([^#\s]+)#(\S+) -->/g

/** Numbers of documents against the records they come from. */
export function recordedNumbers(tree) {
  return ['README.md', 'docs/numbers.md', 'docs/guide/heavy.md'].flatMap((path) => numbersOf(tree, path))
}

function numbersOf(tree, path) {
  const text = tree.byPath.get(path)?.text
  if (text === undefined) return [{ path, line: 1, message: 'does not exist' }]
  let inNumbers = false
  return text.split('\n').flatMap((line, index) => {
    if (/^##? /.test(line)) inNumbers = /number/i.test(line)
    const at = (message) => ({ path, line: index + 1, message })
    const wrong = [...line.matchAll(MARK)].flatMap((mark) => markFindings(tree, line, mark).map(at))
    return inNumbers ? [...wrong, ...unmarked(line).map((cell) => at(`${cell} names no record`))] : wrong
  })
}

/** Cells of a table's row that show a number and name no record. The first cell names what was measured. */
function unmarked(line) {
  if (!line.startsWith('|') || /^\|[\s:|-]+\|$/.test(line)) return []
  const cells = line.slice(1).split('|').slice(1)
  return cells
    .filter((cell) => /\d/.test(cell.replace(MARK, '')) && !cell.includes('<!-- record:'))
    .map((cell) => cell.trim())
}

function markFindings(tree, line, mark) {
  const [, file] = mark
  const record = tree.byPath.get(`bench/records/${file}`)
  if (record === undefined) return [`bench/records/${file} does not exist`]
  const recorded = JSON.parse(record.text)
  const busy = `bench/records/${file} was made on a busy machine, and is not a measurement`
  return [...(isBusy(recorded) ? [busy] : []), ...valueFindings(recorded, line, mark)]
}

/** As `isBusy` of bench/harness/print.ts, which marks the figures of such a record. */
function isBusy({ machine }) {
  return machine?.loadBefore > machine?.cores / 2
}

function valueFindings(recorded, line, mark) {
  const [, file, key] = mark
  const value = key.split('.').reduce((inside, part) => inside?.[part], recorded)
  if (typeof value !== 'number') return [`bench/records/${file} has no number at ${key}`]
  const shown = /(-?[\d,]*\.?\d+)[^\d|]*$/.exec(line.slice(0, mark.index))?.[1]?.replaceAll(',', '')
  if (shown === undefined) return [`no number before the mark of ${key}`]
  const decimals = shown.split('.')[1]?.length ?? 0
  return Math.abs(Number(shown) - value) <= 10 ** -decimals / 2 + 1e-9
    ? []
    : [`shows ${shown}, the record contains ${value}`]
}

/** What the bench can measure of the published tables has a record. */
export function recordedCells({ sources }) {
  const of = (folder) => sources.filter(({ path }) => path.startsWith(folder))
  const read = (folder) => of(folder).map(({ text }) => JSON.parse(text))
  const recorded = new Set(
    read('bench/records/').flatMap(({ rows }) => rows.flatMap(({ seed }) => seed ?? [])),
  )
  const tables = read('bench/seeds/').flatMap((seed) => seed.tables)
  return tables.flatMap(({ id, work, bench, rows }) => {
    const columns = rows.flatMap(({ key, cells }) => Object.keys(cells).map((column) => `${key}/${column}`))
    return columns
      .filter((cell) => !cell.endsWith('/bytes') && !recorded.has(`${work ?? id}/${cell}`))
      .map((cell) => {
        const message = `has nothing for ${work ?? id}/${cell}: npm run bench -- ${bench}`
        return { path: 'bench/records', line: 1, message }
      })
  })
}

/** The newest record of each table, Node, processor and choice of sections. */
export function currentRecords(tree) {
  const seen = new Map()
  return tree.sources.flatMap(({ path, text }) => {
    const file = /^bench\/records\/[\dT-]+-(.+-node\d+(?:-quick)?)\.json$/.exec(path)?.[1]
    if (file === undefined) return []
    const { machine, parameters } = JSON.parse(text)
    const what = `${file} on ${machine?.cpu}, of ${parameters?.sections}`
    const message = `another record of ${what} is ${seen.get(what)}: remove the older one`
    const found = seen.has(what) ? [{ path, line: 1, message }] : []
    seen.set(what, path)
    return found
  })
}
