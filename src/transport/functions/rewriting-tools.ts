/**
 * The names that compilers, bundlers and coverage tools put into functions, and what to do about each.
 *
 * A function that contains such a name was complete when it was written; advice about captured variables
 * would send its author looking for a variable that is in no source file.
 */

interface RewritingTool {
  readonly names: RegExp
  /** The tool, and why it adds them. */
  readonly adds: string
  readonly remedy: string
}

/** The text of a call of the function by its module, whose types check the call. */
export function callByModule(name: string): string {
  const key = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name) ? name : 'name'
  return `zone.module<typeof import('./m.ts')>('./m.ts').${key}(...)`
}

const BY_MODULE = `move the function to a module and call ${callByModule('name')}`

/** A name that is one of these, in any case of its letters. */
function anyOf(...patterns: readonly string[]): RegExp {
  return new RegExp(`^(${patterns.join('|')})$`, 'i')
}

const TOOLS: readonly RewritingTool[] = [
  {
    names: /^cov_[0-9a-z]+$/,
    adds: 'istanbul adds it to count coverage',
    remedy:
      "measure with V8's coverage (c8, vitest's provider v8, jest --coverageProvider=v8), " +
      'or write /* istanbul ignore next */ before the function',
  },
  {
    names: /^__(vite_ssr|vi_import|vi_export)_/,
    adds: 'vite and vitest replace an import with it',
    remedy: `${BY_MODULE}, or list the file in vitest's server.deps.external`,
  },
  {
    names: /^__name$/,
    adds: 'esbuild and tsx add it to keep the names of functions',
    remedy: 'set keepNames to false, or run TypeScript with Node itself',
  },
  {
    names: anyOf(
      'tslib(_\\d+)?|__(awaiter|generator|rest|assign|spread(Array)?|read|values|extends|makeTemplateObject)',
      '__(await|async(Generator|Delegator|Values)|createBinding|exportStar|import(Default|Star))',
      '__(decorate|param|metadata|esDecorate|runInitializers|propKey|setFunctionName)',
      '__(classPrivateField(Get|Set|In)|addDisposableResource|disposeResources)',
      '__rewriteRelativeImportExtension',
    ),
    adds: 'TypeScript adds it for a target older than the syntax used',
    remedy: 'set "target" to "es2022" or newer (for `using`: "esnext") in tsconfig.json',
  },
  {
    names: anyOf(
      '_(async_?to_?generator|async_?generator(_delegate)?|await_?async_?generator|ts_generator)\\d*',
      '_(class_?(static_?)?private_?\\w+|assert_?class_?brand|class_?call_?check|create_?class)\\d*',
      '_(define_?property|object_?spread(_props)?|object_?without_?properties|sliced_?to_?array)\\d*',
      '_(to_?consumable_?array|(un)?iterable_?to_?array|interop_?require_?(default|wildcard))\\d*',
      '_(ts_decorate|regenerator(_?runtime)?|using_?ctx)\\d*',
    ),
    adds: 'Babel and swc add it for a target older than the syntax used',
    remedy: 'compile for a newer target (Babel: targets { node: "20" }; swc: jsc.target "es2022")',
  },
  {
    names: /^__(webpack_\w+__|WEBPACK_\w+__|turbopack_\w+)$|^_?_WEBPACK_/,
    adds: 'webpack and Turbopack replace an import with it',
    remedy: `write import(/* webpackIgnore: true */ module) inside the function, or ${BY_MODULE}`,
  },
  {
    names: anyOf(
      '__(toESM|toCommonJS|commonJS(Min)?|require|export|esm(Min)?|publicField|using|callDispose)',
      '__(private(Add|Get|Set|In|Method|Wrapper)|accessCheck)',
    ),
    adds: 'esbuild and Rolldown add it when they bundle or compile for an older target',
    remedy: `set the target to "node20" or newer, or ${BY_MODULE}`,
  },
  {
    names: /^stry(MutAct|Cov|NS)_\w+$/,
    adds: 'Stryker adds it to switch mutants',
    remedy: 'write // Stryker disable all before the function',
  },
]

/** Which tool adds a variable of this name, and the remedy; `undefined` for names that authors write. */
export function rewritingToolOf(
  name: string,
): { readonly adds: string; readonly remedy: string } | undefined {
  return TOOLS.find(({ names }) => names.test(name))
}
