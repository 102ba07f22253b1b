/**
 * How an app is loaded from a module.
 *
 * For the other folders of this package; not part of its API.
 */
export { type AppSource, loadApp, type ModuleApp } from './cluster/app-module.ts'
