/**
 * Two checks that find nothing.
 *
 * The second one counts a find that it has expected.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from 'corespun/test'

test('nothing is found', () => check({ seeds: 40 }, ({ step }) => step()))

test('a find that is expected', () =>
  assert.rejects(
    check({ seeds: 10 }, ({ seed }) => assert.ok(seed < 4)),
    { code: 'CHECK_FAILED' },
  ))
