/**
 * The app that `corespun serve` serves in table `start`.
 * One route, as that of the other servers.
 */
export default { routes: { '/': () => 'hello' } }
