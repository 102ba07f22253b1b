/**
 * SIGKILL, in turn for the server that leads and for a host. What was killed is back, and has what it missed,
 * before anything else is killed.
 */
export const kill = {
  verb: 'killed',
  times: 2,
  jobs: 300,
  isApart: false,

  async strike(time, { cluster, hosts }, report) {
    const isServer = time % 2 === 0
    const victim = isServer ? await cluster.leader() : hosts[(time >> 1) % hosts.length]
    await victim.end('SIGKILL')
    report(`killed ${victim.name}`)
    await victim.start()
    await cluster.whole()
    return isServer ? 'servers' : 'hosts'
  },
}
