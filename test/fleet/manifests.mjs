/**
 * What the manifests of examples/fleet name, compared with what there is.
 *
 * Both kinds are read into workloads of one form, so that the rules are stated once: the commands by the
 * argument parser of the command itself, files by the Dockerfile and keys.ts, ports and paths by nats.conf.
 */
import { existsSync, readFileSync } from 'node:fs'
import { readHostArguments } from '../../dist/cli/host/host-arguments.js'
import { inRoot } from '../../scripts/set-up/index.mjs'

const MANIFEST = JSON.parse(readFileSync(inRoot('package.json'), 'utf8'))

/**
 * @typedef {object} Workload
 * @property {string} name
 * @property {string[]} command
 * @property {Record<string, string>} env
 * @property {number} graceMs From SIGTERM to SIGKILL.
 * @property {Map<string, string>} files Path in the container: file of the example.
 * @property {string[]} folders That are kept.
 * @property {number[]} ports
 * @property {{path: string, port: number}[]} probes
 */
/** @typedef {{workloads: Workload[], servers: string[], problems: string[]}} Deployed */

/** @returns {Deployed} */
export function composeWorkloads({ services, configs, secrets, volumes }) {
  const problems = []
  const named = (name, kinds, source) => {
    if (kinds[source] === undefined) problems.push(`${name} names ${source}, which is not there`)
    return kinds[source]?.file?.split('/').at(-1)
  }
  const workloads = Object.entries(services).map(([name, service]) => {
    const files = [
      ...(service.configs ?? []).map(({ source, target }) => [target, named(name, configs, source)]),
      ...(service.secrets ?? []).map((source) => [`/run/secrets/${source}`, named(name, secrets, source)]),
    ]
    const mounts = (service.volumes ?? []).map((volume) => volume.split(':'))
    for (const [source] of mounts) named(name, volumes, source)
    const probe = /^http:\/\/127\.0\.0\.1:(\d+)([^?]*)/.exec(service.healthcheck?.test.at(-1) ?? '')
    return {
      name,
      command: service.command,
      env: service.environment ?? {},
      graceMs: Number.parseFloat(service.stop_grace_period) * 1000,
      files: new Map(files),
      folders: mounts.map(([, target]) => target),
      ports: (service.ports ?? []).map((port) => Number(port.split(':').at(-1))),
      probes: probe === null ? [] : [{ port: Number(probe[1]), path: probe[2] }],
    }
  })
  const servers = Object.values(services).flatMap(({ networks }) => networks?.default?.aliases ?? [])
  const rooted = Object.entries(services).filter(([, service]) => service.read_only !== true)
  problems.push(...rooted.map(([name]) => `${name} may write to its root`))
  return { workloads, servers, problems }
}

/** @returns {Deployed} */
export function kubernetesWorkloads(documents) {
  const problems = []
  const deployed = documents.filter(({ spec }) => spec.template !== undefined)
  const pods = deployed.map(({ spec }) => spec.template)
  for (const { kind, metadata, spec } of documents) {
    const chosen = spec.selector?.matchLabels ?? spec.podSelector?.matchLabels ?? spec.selector
    const labels = (spec.template === undefined ? pods : [spec.template]).map((pod) => pod.metadata.labels)
    const isChosen = labels.some((each) =>
      Object.entries(chosen).every(([key, value]) => each[key] === value),
    )
    if (kind === 'PodDisruptionBudget') {
      const guarded = deployed.find((each) => each.metadata.name === metadata.name)
      if (spec.maxUnavailable * 2 >= (guarded?.spec.replicas ?? 0))
        problems.push(`of ${metadata.name} no majority has to stay`)
    }
    if (!isChosen) problems.push(`the selector of the ${kind} ${metadata.name} matches no pod`)
  }
  const workloads = deployed.map(({ metadata: { name }, spec }) => podOf(name, spec, problems))
  const servers = deployed
    .filter(({ kind }) => kind === 'StatefulSet')
    .flatMap(({ metadata: { name }, spec: { replicas, serviceName } }) =>
      Array.from({ length: replicas }, (_, at) => `${name}-${at}.${serviceName}`),
    )
  return { workloads, servers, problems }
}

function podOf(name, { template: { spec: pod }, volumeClaimTemplates = [] }, problems) {
  const [container] = pod.containers
  const { readOnlyRootFilesystem, allowPrivilegeEscalation } = container.securityContext
  if (!pod.securityContext.runAsNonRoot || !readOnlyRootFilesystem || allowPrivilegeEscalation)
    problems.push(`${name} may be root, or write to its root`)
  const { requests, limits } = container.resources
  if (!requests?.cpu || !requests.memory || !limits?.memory) problems.push(`${name} has no limits`)
  const claims = volumeClaimTemplates.map(({ metadata }) => metadata.name)
  const [files, folders] = [new Map(), []]
  for (const { name: mounted, mountPath } of container.volumeMounts ?? []) {
    const volume = pod.volumes?.find((each) => each.name === mounted)
    if (claims.includes(mounted)) folders.push(mountPath)
    else if (volume === undefined) problems.push(`${name} mounts ${mounted}, which is not a volume`)
    // The files of its command in the manifest's comment.
    else if (volume.configMap !== undefined)
      for (const file of ['nats.conf', 'users.conf']) files.set(`${mountPath}/${file}`, file)
    else for (const { key, path } of volume.secret.items) files.set(`${mountPath}/${path}`, key)
  }
  const portOf = (port) => {
    const found = container.ports?.find((each) => each.name === port || each.containerPort === port)
    if (found === undefined) problems.push(`${name} probes the port ${port}, which it has not`)
    return found?.containerPort
  }
  const probes = ['startupProbe', 'readinessProbe', 'livenessProbe'].flatMap((each) => container[each] ?? [])
  return {
    name,
    command: [...container.command, ...(container.args ?? [])],
    env: Object.fromEntries((container.env ?? []).map((each) => [each.name, each.value ?? ''])),
    graceMs: pod.terminationGracePeriodSeconds * 1000,
    files,
    folders,
    ports: (container.ports ?? []).map(({ containerPort }) => containerPort),
    probes: probes.map(({ httpGet: { path, port } }) => ({ path: path.split('?')[0], port: portOf(port) })),
  }
}

/**
 * @param {Deployed} deployed @param {Record<string, string>} files Of the example, by name.
 * @returns {string[]}
 */
export function problemsIn({ workloads, servers, problems }, files) {
  const copied = /^COPY (.*) \.\/$/m.exec(files.Dockerfile)[1].split(' ')
  const users = [...files['keys.ts'].matchAll(/(\w+): \{ (?:hosts|submits): \[/g)].map(([, user]) => user)
  const known = { servers, copied, users, files }
  return [
    ...problems,
    ...imageProblems(files.Dockerfile, copied),
    ...workloads.flatMap((workload) => workloadProblems(workload, known)),
  ]
}

function imageProblems(dockerfile, copied) {
  const { name, version, peerDependencies } = MANIFEST
  const expected = { ...peerDependencies, [name]: version }
  const packages = [...dockerfile.matchAll(/(\S+)@(\d[\d.]*)/g)]
  return [
    ...packages
      .filter(([, each, found]) => !`${expected[each]?.replace('^', '')}.`.startsWith(`${found}.`))
      .map(([text]) => `the Dockerfile installs ${text}; the manifest has another version`),
    ...copied
      .filter((file) => !existsSync(inRoot('examples', 'fleet', file)))
      .map((file) => `no file ${file}`),
  ]
}

function workloadProblems(workload, known) {
  const { name, command, env } = workload
  const found = []
  const must = (isRight, problem) => isRight || found.push(`${name}: ${problem}`)
  const [program] = command
  for (const file of workload.files.values()) {
    const isMade = ['nats.conf', 'users.conf', ...known.users.map((user) => `${user}.nkey`)].includes(file)
    must(isMade, `nothing makes the file ${file}`)
  }
  const checkCaller = (urls, nkey, user) => {
    for (const host of urls.replace('nats://', '').split(','))
      must(known.servers.includes(host), `there is no server ${host}`)
    must(workload.files.get(nkey) === `${user}.nkey`, `${nkey} is not the key of ${user}`)
  }
  const checkModule = (module) => must(known.copied.includes(module), `the image has no ${module}`)
  if (program === 'nats-server') serverProblems(workload, known, must)
  else if (program === 'node') {
    checkModule(command[1])
    checkCaller(env.CORESPUN_NATS, env.CORESPUN_NKEY, 'gateway')
    for (const key of Object.keys(env)) must(known.files[command[1]]?.includes(key), `nothing reads ${key}`)
    must(workload.ports.includes(Number(env.PORT)), `it listens to ${env.PORT}, not to ${workload.ports}`)
    for (const { path } of workload.probes)
      must(known.files[command[1]]?.includes(`'${path}'`), `there is no route ${path}`)
  } else {
    const isCommand = program === `node_modules/.bin/${Object.keys(MANIFEST.bin)[0]}` && command[1] === 'host'
    must(isCommand, `there is no command ${program} ${command[1]}`)
    try {
      const { module, drainMs, connection, replicas } = readHostArguments(command.slice(2))
      checkModule(module)
      must(drainMs < workload.graceMs, `it drains for ${drainMs} ms and is killed after ${workload.graceMs}`)
      must(replicas <= known.servers.length, `there are not ${replicas} servers`)
      checkCaller(connection.servers, connection.options.nkey, connection.options.inbox)
    } catch ({ message }) {
      found.push(`${name}: ${message}`)
    }
  }
  return found
}

function serverProblems({ command, files, folders, ports, probes }, { servers, files: texts }, must) {
  const conf = texts['nats.conf']
  const [config] = command.slice(-1)
  must(files.get(config) === 'nats.conf', `${config} is not nats.conf`)
  const include = /^include (\S+)$/m.exec(conf)[1]
  must([...files.values()].includes(include), `${include} is not mounted`)
  for (const [, path] of conf.matchAll(/(?:store_dir|pid_file): (\/[^/,\n]+)/g))
    must(folders.includes(path), `nothing is kept at ${path}`)
  const routes = [...conf.matchAll(/nats:\/\/([^:]+):(\d+)/g)]
  must(`${routes.map(([, host]) => host)}` === `${servers}`, `routes and servers differ: ${servers}`)
  const listens = [...conf.matchAll(/(listen|http): 0\.0\.0\.0:(\d+)/g)].map(([, , port]) => Number(port))
  for (const [, , port] of routes) must(listens.includes(Number(port)), `no server listens to ${port}`)
  for (const port of ports) must(listens.includes(port), `no server listens to ${port}`)
  if (ports.length > 0) for (const port of listens) must(ports.includes(port), `${port} is not a port of it`)
  const monitor = Number(/^http: 0\.0\.0\.0:(\d+)$/m.exec(conf)[1])
  for (const { port, path } of probes)
    must(port === monitor && path === '/healthz', `it is not probed at ${port}${path} but at ${monitor}`)
}
