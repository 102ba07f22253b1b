/**
 * The licences of what is compiled into a core, as the text that its package carries.
 *
 * The list is cargo's own, of the crates that it has compiled for this core, so it is right for each
 * platform. The texts are the files in the sources of each crate. A crate without such a file gets the
 * text of MIT, if it may be used under it, with its authors, or that of Apache 2.0; any other one is an
 * error. So is C code of others in a crate, unless it is named here. Where a crate offers a choice, MIT is
 * chosen: its text is a tenth of that of Apache 2.0. (Generators such as cargo-about read manifests; they see
 * neither the crates of std, which are compiled here, nor such C code, nor what the linker adds.)
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { inRoot, Stop } from '../set-up/index.mjs'

/**
 * @typedef {object} Part
 * @property {string} name With its version.
 * @property {string} license As SPDX names it.
 * @property {string[]} texts
 */

const LICENSE_FILE = /^(un)?licen[cs]e|^copying|^copyright|^notice/i
/** Files of licences that need not be chosen where there is one of MIT. */
const OTHER = /apache|unlicen|zlib|isc|bsd/i
/** For a crate that has no file of it. */
const MIT = readFileSync(new URL('MIT.txt', import.meta.url), 'utf8')
/** Crates of Rust's own repository have no files of their own. */
const RUST = 'The Rust Project Contributors'
const RUST_SOURCE = /[\\/](rustc-[\d.]+|rust)[\\/]library[\\/](?!vendor)/
const OURS = 'corespun-'
const CODE_OF_C = /\.(c|cc|cpp|S)$/
/** By crate: what its C code is, its licence, and where in the crate the text of that is. */
const C_CODE = {
  // Its own LICENSE files name BoringSSL's, from which the rest of its C code comes.
  ring: ['fiat-crypto', 'MIT', 'third_party/fiat/LICENSE'],
  'lmdb-master-sys': ['LMDB', 'OLDAP-2.8', 'lmdb/libraries/liblmdb/LICENSE'],
}
/** Not a procedural macro, and not a program of a build. */
const LIBRARY = /^(r|dy)?lib$/
/** Where the words of MIT begin that all have alike, behind a title and holders. */
const ALIKE = /Permission is hereby granted, free of charge|$/
/** The text of Apache 2.0, which is this package's LICENSE, however its lines break. */
const APACHE = new RegExp(
  readFileSync(inRoot('LICENSE'), 'utf8').trim().split(/\s+/).map(escaped).join('\\s+'),
)
const IN_LICENSE = 'The Apache License, Version 2.0, whose text is the file LICENSE beside this one.'
const TITLE =
  'The native core of Corespun contains software of others. It is listed first, then come the licences.'
const RULER = '-'.repeat(80)

/**
 * The parts of a core.
 * @param {object[]} messages What `cargo build --message-format=json` has printed.
 * @returns {Part[]} Without the crates of this project, and without what ran during the build only.
 * @throws {Stop} When a crate has no text.
 */
export function partsOf(messages) {
  const compiled = messages.filter(
    // What runs during the build is compiled without optimization.
    ({ reason, target, profile }) =>
      reason === 'compiler-artifact' && LIBRARY.test(target.kind[0]) && profile.opt_level !== '0',
  )
  const manifests = new Set(compiled.map(({ manifest_path: path }) => path))
  return [...manifests].flatMap(partsOfCrate).filter(({ name }) => !name.startsWith(OURS))
}

/**
 * A part that is not a crate.
 * @param {string} path Of its text.
 */
export function partWith(name, license, path) {
  return { name, license, texts: [readFileSync(path, 'utf8')] }
}

/** One text for all parts: their list, then each licence once, below the names of those that have it. */
export function notices(parts) {
  const sorted = parts.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  const list = [...new Set(sorted.map(({ name, license }) => `- ${name}: ${license}`))]
  /** @type {Map<string, {text: string, heads: Map<string, string[]>}>} By words: lines break differently. */
  const texts = new Map()
  for (const { name, text } of sorted.flatMap(({ name, texts: own }) =>
    own.map((text) => ({ name, text })),
  )) {
    const whole = text.replaceAll('\r\n', '\n').replace(APACHE, IN_LICENSE).trim()
    const start = whole.search(ALIKE) % whole.length
    const [head, alike] = [whole.slice(0, start).trim(), whole.slice(start)]
    const words = alike.split(/\s+/).join(' ')
    const { heads } = texts.get(words) ?? texts.set(words, { text: alike, heads: new Map() }).get(words)
    heads.set(head, [...(heads.get(head) ?? []), name])
  }
  const titled = ([head, names]) => [[...new Set(names)].join('\n'), head].join('\n').trim()
  const sections = [...texts.values()].map(
    ({ text, heads }) => `${RULER}\n${[...heads].map(titled).join('\n\n')}\n\n${text}\n`,
  )
  return `${TITLE}\n\n${list.join('\n')}\n\n${sections.join('\n')}`
}

function partsOfCrate(path) {
  const folder = dirname(path)
  const manifest = readFileSync(path, 'utf8')
  const valueOf = (key) => new RegExp(`^${key} = "([^"\\n]*)"`, 'm').exec(manifest)?.[1]
  const crate = valueOf('name')
  const isRust = RUST_SOURCE.test(path)
  // Some of Rust's own name none; all of its repository has this one.
  const license = valueOf('license') ?? (isRust ? 'MIT OR Apache-2.0' : 'none named')
  const name = isRust ? `${crate} of Rust's standard library` : `${crate} ${valueOf('version')}`
  const files = readdirSync(folder, { withFileTypes: true }).filter(
    (entry) => entry.isFile() && LICENSE_FILE.test(entry.name),
  )
  const texts = chosenOf(files, license).map(({ name: file }) => readFileSync(join(folder, file), 'utf8'))
  if (texts.length === 0 && !crate.startsWith(OURS)) {
    const [, authors = `the authors of ${crate}`] = /^authors = \[([^\]]+?),?\s*\]/m.exec(manifest) ?? []
    if (/\bMIT\b/.test(license))
      texts.push(MIT.replace('<holders>', () => (isRust ? RUST : authors.replaceAll('"', ''))))
    // The licence of this project, in words that are the same for all.
    else if (license === 'Apache-2.0') texts.push(readFileSync(inRoot('LICENSE'), 'utf8'))
    else throw new Stop(`${name} has no text of its licence (${license}): ${folder}`)
  }
  const own = { name, license, texts }
  const [c, ...rest] = C_CODE[crate] ?? []
  if (c !== undefined) return [own, partWith(`${c}, in ${name}`, rest[0], join(folder, rest[1]))]
  const code = isRust
    ? undefined
    : readdirSync(folder, { recursive: true }).find((file) => CODE_OF_C.test(file))
  if (code === undefined) return [own]
  throw new Stop(`${name} contains C code, ${code}: name it with its licence in scripts/cross/notices.mjs`)
}

/** All files, or those of MIT and notices, if one may choose and it has its own file. */
function chosenOf(files, license) {
  const isChoice = /\bMIT\b/.test(license) && !/\bAND\b/.test(license)
  const isMit = ({ name }) => /mit/i.test(name)
  return isChoice && files.some(isMit) ? files.filter((file) => isMit(file) || !OTHER.test(file.name)) : files
}

function escaped(word) {
  return word.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}
