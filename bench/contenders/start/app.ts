/** The app that `corespun serve` serves in table `start`. */
export default { routes: { '/': () => 'hello' } }
