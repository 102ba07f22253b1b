/**
 * The users of the fleet: an nkey for the hosts, one for the gateway, one for you, and what each may do.
 *
 *   node keys.ts secrets && npx corespun fleet config secrets/users.json > secrets/users.conf
 *
 * writes the seeds, of which nobody else needs a copy, and the list for the servers, without secrets. Without
 * a folder it prints that list as the servers read it.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nkeys } from '@nats-io/transport-node'
import { type FleetUser, serverConfig } from 'corespun/fleet'

const ROLES = {
  host: { hosts: ['invoices'], takes: ['invoices'] },
  gateway: { submits: ['invoices'] },
  operator: { creates: true, observes: true },
}
const folder = process.argv[2]

const users = Object.entries(ROLES).map(([name, roles]): FleetUser => {
  const pair = nkeys.createUser()
  if (folder !== undefined) {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    // Containers read it as another user; the folder keeps everybody else out.
    writeFileSync(join(folder, `${name}.nkey`), pair.getSeed(), { mode: 0o644, flag: 'wx' })
  }
  return { name, nkey: pair.getPublicKey(), ...roles }
})
if (folder === undefined) console.log(serverConfig(users))
else writeFileSync(join(folder, 'users.json'), JSON.stringify(users, undefined, 2))
