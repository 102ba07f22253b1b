/**
 * The stress test on a native core compiled with AddressSanitizer: reads and writes of freed or foreign
 * memory.
 *
 * A step of `npm run check:long`: node test/stress/sanitized.mjs [kills] [seed]. Needs a nightly Rust
 * compiler and gcc's libasan, which is loaded before Node: Node itself is not instrumented, so what V8 does
 * with its own memory is not seen. Leaks are not looked for (detect_leaks=0): Node and V8 end with memory
 * that they never free, which would drown ours, and ports and tasks are kept for ever on purpose. What
 * becomes of promises, threads and descriptors is judged as in kills.test.mjs. The size of the process is
 * not: the sanitizer keeps what was freed.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { faultsOf } from './judge.mjs'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const TARGET = 'x86_64-unknown-linux-gnu'
const FOLDER = `${ROOT}target/asan`
const [kills = '500', seed = String(Date.now() % 1_000_000)] = process.argv.slice(2)

const library = execFileSync('gcc', ['-print-file-name=libasan.so'], { encoding: 'utf8' }).trim()
if (!library.startsWith('/'))
  throw new Error('gcc has no libasan.so: install libasan (Debian: libgcc-12-dev)')
run('cargo', ['+nightly', 'build', '--locked', '-p', 'corespun-node', '--target', TARGET], {
  RUSTFLAGS: '-Zsanitizer=address -Cforce-frame-pointers=yes',
  CARGO_TARGET_DIR: FOLDER,
})
const core = `${FOLDER}/corespun.node`
copyFileSync(`${FOLDER}/${TARGET}/debug/libcorespun_node.so`, core)
console.log(`seed ${seed}`)
const line = run(process.execPath, ['--expose-gc', `${ROOT}test/stress/kills.mjs`, kills, seed], {
  CORESPUN_NATIVE_PATH: core,
  LD_PRELOAD: library,
  ASAN_OPTIONS: 'detect_leaks=0:halt_on_error=1:exitcode=99',
})
console.log(line)
const faults = faultsOf(JSON.parse(line), Number(kills), { memory: false })
if (faults.length > 0) throw new Error(faults.join('; '))

/** What the program wrote to its standard output. */
function run(program, args, env) {
  const { status, signal, error, stdout } = spawnSync(program, args, {
    stdio: ['inherit', 'pipe', 'inherit'],
    cwd: ROOT,
    env: { ...process.env, ...env },
    encoding: 'utf8',
  })
  if (status !== 0) throw error ?? new Error(`${program} ended with ${signal ?? status}`)
  return stdout
}
