/**
 * The licences of a core, from crates that are made here.
 *
 * Those of a real core are checked in test/package, against Cargo.lock.
 */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { inRoot } from '../set-up/index.mjs'
import { notices, partsOf, partWith } from './notices.mjs'

const folder = mkdtempSync(join(tmpdir(), 'corespun-notices-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** cargo's message of a crate in a folder, which is made with these files. */
function crate(path, manifest, files = {}, { kind = 'lib', optimized = '3' } = {}) {
  const own = join(folder, path)
  const fields = Object.entries(manifest).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
  const toml = `[package]\n${fields.join('\n')}\n\n[dependencies.other]\nname = "x"\n`
  for (const [name, text] of Object.entries({ ...files, 'Cargo.toml': toml })) {
    mkdirSync(dirname(join(own, name)), { recursive: true })
    writeFileSync(join(own, name), text)
  }
  const [manifest_path, target, profile] = [
    join(own, 'Cargo.toml'),
    { kind: [kind] },
    { opt_level: optimized },
  ]
  return { reason: 'compiler-artifact', manifest_path, target, profile }
}

test('each crate of the core is listed, and each text is there once', () => {
  const ruler = '-'.repeat(80)
  const zlib = { name: 'b', version: '2.0.0', license: 'Zlib' }
  const messages = [
    crate('b-2.0.0', zlib, { 'LICENCE.md': 'one\ntext' }),
    crate('a-1.0.0', { ...zlib, name: 'a' }, { COPYING: 'one text\r\n', NOTICE: 'two', 'main.rs': 'code' }),
    crate('build-1.0.0', { ...zlib, name: 'build' }, {}, { optimized: '0' }),
    crate('macro-1.0.0', { ...zlib, name: 'macro' }, {}, { kind: 'proc-macro' }),
    crate('corespun-own', { ...zlib, name: 'corespun-own' }),
    { reason: 'build-finished', success: true },
  ]
  const linked = partWith('c', 'ISC', join(folder, 'b-2.0.0', 'LICENCE.md'))
  const [, list, ...texts] = notices([...partsOf(messages), linked]).split(/\n\n(?=- )|(?=-{80}\n)/)
  assert.equal(list, '- a 2.0.0: Zlib\n- b 2.0.0: Zlib\n- c: ISC\n\n')
  assert.deepEqual(texts, [`${ruler}\na 2.0.0\nb 2.0.0\nc\n\none text\n\n`, `${ruler}\na 2.0.0\n\ntwo\n`])
})

test('a crate without a file gets the text of MIT with its authors, if that is its licence', () => {
  const manifest = { name: 'd', version: '1.0.0', authors: ['A <a@b>', 'B'], license: 'MIT OR Apache-2.0' }
  const [own] = partsOf([crate('d-1.0.0', manifest)])
  assert.match(own.texts[0], /Copyright \(c\) A <a@b>, ?B\n\nPermission is hereby granted/)
  const std = { name: 'core', version: '0.0.0' }
  const [rust] = partsOf([crate('rustc-1.96.0/library/core', std, {}, { kind: 'rlib' })])
  assert.match(rust.texts[0], /Copyright \(c\) The Rust Project Contributors\n/)
  assert.equal(rust.license, 'MIT OR Apache-2.0')
  assert.equal(rust.name, "core of Rust's standard library")
})

test('of a choice of licences MIT is taken, with notices; all of those that are required together', () => {
  const files = { 'LICENSE-MIT': 'mit', 'LICENSE-APACHE': 'apache', COPYRIGHT: 'holders', UNLICENSE: 'un' }
  const textsOf = (license) =>
    partsOf([crate(`choice-${license.length}`, { name: 'f', version: '1.0.0', license }, files)])[0].texts
  for (const license of ['MIT OR Apache-2.0', 'MIT/Apache-2.0'])
    assert.deepEqual(textsOf(license).sort(), ['holders', 'mit'])
  for (const license of ['MIT AND Apache-2.0', 'Apache-2.0'])
    assert.deepEqual(textsOf(license).sort(), ['apache', 'holders', 'mit', 'un'])
})

test('the text of Apache 2.0 is that of the package, however its lines break', () => {
  const apache = readFileSync(inRoot('LICENSE'), 'utf8')
  const manifest = { name: 'g', version: '1.0.0', license: 'Apache-2.0' }
  const files = { LICENSE: `${apache.replace(/ +\n?/g, '\n')}\nMore words` }
  const text = notices(partsOf([crate('g-1.0.0', manifest, files)]))
  assert.match(text, /\ng 1\.0\.0\n\nThe Apache License, .* LICENSE beside this one\.\s+More words\n$/)
})

test('a crate whose licence has no text is refused', () => {
  const unclear = crate('e-1.0.0', { name: 'e', version: '1.0.0', license: 'BSD-3-Clause' })
  const message = /e 1\.0\.0 has no text of its licence \(BSD-3-Clause\)/
  assert.throws(() => partsOf([unclear]), { name: 'Stop', message })
})

test('a crate under Apache 2.0 alone gets its text', () => {
  const manifest = { name: 'apache', version: '1.0.0', license: 'Apache-2.0' }
  const [own] = partsOf([crate('apache-1.0.0', manifest)])
  assert.match(own.texts[0], /^\s*Apache License\s+Version 2\.0/)
})

test('C code in a crate is an error, unless it is named with its licence', () => {
  const manifest = { name: 'with-c', version: '1.0.0', license: 'Zlib' }
  const other = crate('with-c-1.0.0', manifest, { LICENSE: 'own', 'deep/in/it.c': 'int main;' })
  assert.throws(() => partsOf([other]), /with-c 1\.0\.0 contains C code, deep.in.it\.c: name it with/)
  const files = { LICENSE: 'own', 'lmdb/libraries/liblmdb/LICENSE': 'of C', 'lmdb/mdb.c': 'int main;' }
  const named = crate('lmdb-1.0.0', { ...manifest, name: 'lmdb-master-sys' }, files)
  assert.deepEqual(partsOf([named]), [
    { name: 'lmdb-master-sys 1.0.0', license: 'Zlib', texts: ['own'] },
    { name: 'LMDB, in lmdb-master-sys 1.0.0', license: 'OLDAP-2.8', texts: ['of C'] },
  ])
})
