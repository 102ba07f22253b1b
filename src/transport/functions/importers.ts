/**
 * `import()` as if written in another file, for functions and exports that were numbered in another thread.
 *
 * A module is found by Node's own loader, so hooks, conditions and errors are those of the file.
 */
import vm from 'node:vm'

type Importer = (module: string) => Promise<unknown>

const importers = new Map<string, Importer>()

/** An `import()` that resolves as if written in `from`. */
export function importerOf(from: string): Importer {
  let importer = importers.get(from)
  if (importer === undefined) {
    const code = 'return import(module)'
    importer = withLoader(
      (loader) => vm.compileFunction(code, ['module'], { ...loader, filename: from }) as unknown as Importer,
    )
    importers.set(from, importer)
  }
  return importer
}

const knownImporters = new Map<string, Importer>()

/**
 * As `importerOf`, for literal names: Node's loader is not asked for a module again, which would cost each
 * item of a `map` over files some microseconds. The language allows no other outcome: the same name in the
 * same file is the same module from its first success on. A failure is not remembered.
 */
export function knownImporterOf(from: string): Importer {
  let importer = knownImporters.get(from)
  if (importer === undefined) {
    const load = importerOf(from)
    const loaded = new Map<string, unknown>()
    importer = async (module) => {
      if (loaded.has(module)) return loaded.get(module)
      const space = await load(module)
      loaded.set(module, space)
      return space
    }
    knownImporters.set(from, importer)
  }
  return importer
}

type Loader = { readonly importModuleDynamically: typeof vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER }

const LOADER: Loader = { importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER }

let warned = false

/** Call `compile` with Node's module loader. Node warns at its first use in a thread: suppressed here. */
export function withLoader<Made>(compile: (loader: Loader) => Made): Made {
  if (!warned) {
    warned = true
    const emitWarning = process.emitWarning
    process.emitWarning = () => {}
    try {
      const first = vm.compileFunction('return import("node:process")', [], LOADER) as () => Promise<unknown>
      first().catch(() => {}) // Only module hooks could reject it.
    } finally {
      process.emitWarning = emitWarning
    }
  }
  return compile(LOADER)
}
