/**
 * The mistakes that users make, and what Corespun does about each: a row is a mistake with the exact message,
 * in which the name, the location, the received value and the remedy are marked (check.mjs). Rows without an
 * error have what is observed and the reason.
 */
import { after, describe, test } from 'node:test'
import { leftOut } from '../../dist/base/part.test.support.js'
import { check } from './check.mjs'
import * as commands from './mistakes/commands.mjs'
import * as fibers from './mistakes/fibers.mjs'
import * as functions from './mistakes/functions.mjs'
import * as http from './mistakes/http.mjs'
import * as services from './mistakes/services.mjs'
import * as shared from './mistakes/shared.mjs'
import * as zones from './mistakes/zones.mjs'

const TOPICS = { zones, functions, services, shared, http, fibers, commands }

for (const [topic, { mistakes, close }] of Object.entries(TOPICS)) {
  const file = new URL(`./mistakes/${topic}.mjs`, import.meta.url).href
  describe(topic, { concurrency: topic === 'commands' ? 4 : 1 }, () => {
    if (close !== undefined) after(close)
    for (const [index, row] of mistakes.entries())
      test(row.mistake, { timeout: 60_000, skip: leftOut(index) }, () => check(row, file))
  })
}
