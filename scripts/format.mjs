/**
 * `npm run format`: prettier (.prettierrc.json) and rustfmt (rustfmt.toml), the same that editors run.
 *
 * Words choose files and folders for prettier: `npm run format -- src/zone`. Rust is formatted as a whole.
 */
import { onSupportedNode } from './set-up/node-version.mjs'

onSupportedNode(async function () {
  const { prettier } = await import('./check/main.mjs')
  const { must } = await import('./set-up/index.mjs')
  console.log(await prettier('--write', process.argv.slice(2)))
  await must('Formatting Rust', 'cargo', ['fmt', '--all'])
  return 0
})
