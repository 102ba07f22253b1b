/**
 * Members by name: what an author wrote, and nothing that the language put there.
 *
 * A table of objects, names and whether somebody meant that name to be called.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { hasMember } from './members.ts'

class Service {
  static make(): void {}
  score(): void {}
}
class Better extends Service {}

test('own members and those of classes are there, those of the language are not', () => {
  const cases: readonly [object, string, boolean][] = [
    [{ f: 1 }, 'f', true],
    [{ f: 1 }, 'g', false],
    [{ constructor: 1 }, 'constructor', true],
    [{}, 'constructor', false],
    [{}, '__proto__', false],
    [{}, 'toString', false],
    [() => {}, 'call', false],
    [() => {}, 'constructor', false],
    [new Better(), 'score', true],
    [new Better(), 'constructor', false],
    [new Better(), 'valueOf', false],
    [Better, 'make', true],
    [Better, 'bind', false],
    [Object.create(null) as object, 'hasOwnProperty', false],
    [runInNewContext('({ f() {} })') as object, 'f', true],
    [runInNewContext('({ f() {} })') as object, 'toString', false],
    [runInNewContext('(function () {})') as object, 'apply', false],
  ]
  for (const [owner, name, expected] of cases) assert.equal(hasMember(owner, name), expected, name)
})
