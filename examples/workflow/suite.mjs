/**
 * The published tests of Vercel's Workflow SDK on the World of this folder.
 * Each starts a server in a process of its own; all have one file.
 */
import { createTestSuite } from '@workflow/world-testing'

createTestSuite('./world.ts')
