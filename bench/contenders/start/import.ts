/**
 * `node import.js <specifier> <name>`: imports a package and nothing else.
 *
 * Prints as JSON the kind of its export `name`, and what the process has cost by then. `nothing` imports
 * nothing: the floor.
 */
const [specifier, name] = process.argv.slice(2) as [string, string]
const space = specifier === 'nothing' ? {} : ((await import(specifier)) as Record<string, unknown>)
const { user, system } = process.cpuUsage()
const rssMb = process.memoryUsage.rss() / 1e6
console.log(JSON.stringify({ answer: typeof space[name], cpuMs: (user + system) / 1000, rssMb }))
