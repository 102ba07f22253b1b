/**
 * How an app is loaded from a module, and the line of a server that listens.
 *
 * For the other folders of this package; not part of its API.
 */
export { servingLine } from './serving-line.ts'
export { loadApp, type ModuleApp } from './cluster/app-module.ts'
