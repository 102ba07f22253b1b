/**
 * What `corespun --help` and `corespun run --help` print: the manual that is always at hand.
 * Whoever changes a flag, an exit code or a record changes it here too.
 *
 * Over 400 lines: texts, one for each command.
 */

/** Of commands that look at servers. */
const ACCESS = `      --creds <file>     a .creds file: a JWT and its nkey
      --nkey <file>      a file with the seed of an nkey (SU...)
      --inbox <user>     the user's name, for servers with users of corespun fleet config
      --ca <file>        authorities of the servers' certificates (PEM), when not those of Node
      --cert <file>      a certificate (PEM), for servers that verify their clients
      --key <file>       its private key`

export const GENERAL_HELP = `corespun: TypeScript on every core

Usage: corespun <command> [arguments]

Commands:
  run <module>[#export] [inputs]   call a function for every file, line or value, on all cores
  serve <module>[#export]          serve an app over HTTP, on all cores
  host <module>                    run jobs of a file, or offer a module to other machines over NATS
  fleet                            hosts and queues of jobs, live in a terminal
  jobs <engine>                    durable jobs: listed, run anew, forgotten, paused
  runs <engine>                    durable runs: their steps, signals, cancelled, run anew, copied
  test <files>                     the checks of corespun/test in them, under many seeds, on all cores
  top [pid|name]                   what a running process does: workers, queues, routes, jobs, live
  stacks <pid|name>                what every thread of a running process does now
  profile <pid|name>               where its threads spend their CPU time, or what they allocate

  corespun <command> --help           details and examples
  corespun --version                  the version
`

export const RUN_HELP = `corespun run: call a function for every file, line or value, on all cores

Usage: corespun run <module>[#export] [options] [paths, globs or -]

  module    a file (score.ts, ./lib/score.js), an installed package or a node: module;
            TypeScript runs as it is where its types can be erased: no enums, no namespaces with
            values, no parameter properties, no .tsx
  export    the function (a.b reaches inside); without it the default export, or the only function
  inputs    what the function is called with, one item for each call:
              paths, globs     the path of each file, as a string ('src/**/*.ts' in quotes); a
                               directory means every file below it, except hidden ones
              -                each line of standard input, as a string; also when no input is given
              --lines a.txt    each line of these files (LF or CRLF, without it)
              --ndjson -       each line parsed as JSON; blank lines do not count
            Text is read as UTF-8; invalid bytes become U+FFFD.

The function may be async. Each result is printed as one line of JSON, in the order of the inputs;
undefined is printed as null. An item that fails becomes a line like this, and the others continue:
  {"item":7,"error":{"name":"TypeError","message":"..."}}
Items count from 1. What the function prints itself goes to standard error.

Options:
  -w, --workers <n>      most threads; default: one per core; few small items need only one
  -c, --concurrency <n>  items each thread works on at once; default: 1; more is for
                         async functions that wait (for a network, a disk)
  -t, --timeout <time>   longest time for one item: 250ms, 2s, 1m; a bare number is milliseconds;
                         loading the module has no limit (a message appears after 10 s)
  -u, --unordered        print results as they come; a slow item holds up no other
  -n, --numbered         print {"item":7,"value":...}, so that results name their items
      --fail-fast        stop at the first item that fails
      --stacks           add the stack to errors
      --lines, --ndjson  what an item is, see above
      --ignore <glob>    leave these files out of globs and directories, not of paths that are named
                         one by one; may be given several times
      --skip <n>         leave out the first n items, as after an interrupted run; the others keep
                         their numbers; n:mark, as that run prints it, also compares the names of the
                         files that are left out
      --journal <file>   keep what became of each item in this file, so that the same command runs only
                         items that are new, changed or failed; each run prints the lines of all items.
                         A file is the same by its path, size and time of change, a line by its text.
                         An export that durable() has made goes on within an item, at its next step
      --journal-hash     compare files by a hash of their content instead
      --failed           print the items of the journal that failed, with their errors; run nothing
      --line-max <n>     longest line in characters; default: 16777216
      --no-progress      no progress line; there is one only when standard error is a terminal
      --no-observe       open no control socket (corespun top); also CORESPUN_OBSERVE=off
  -h, --help             this text

Memory stays constant however long the input is: reading waits for the workers, and for whoever
reads the results. Ctrl-C finishes the items that run and prints the --skip with which to continue;
twice stops at once. With a journal the same command continues, also after a crash.

Exit codes:
    0  every item has a result (also when the reader left early: | head)
    1  some items failed, or an input could not be read
    2  wrong arguments, no such module or function, results that cannot be written
   70  a bug in Corespun
  130  interrupted (SIGINT);  143  terminated (SIGTERM)

Examples:
  corespun run score.ts 'src/**/*.ts' > scores.ndjson
  git ls-files '*.js' | corespun run score.ts#score -
  zcat events.gz | corespun run clean.ts --ndjson --unordered - | gzip > clean.gz
  seq 5 | corespun run node:path#basename
  corespun run score.ts 'src/**/*.ts' --journal work.db > scores.ndjson
  corespun run score.ts --journal work.db --failed
`

export const SERVE_HELP = `corespun serve: serve an app over HTTP, on all cores

Usage: corespun serve <module>[#export] [options]

  module    a file (app.ts, ./dist/app.js) or an installed package; TypeScript as for corespun run
  export    the app; without it the default export, the one called app, or the module itself

An app is one of
  { routes, fetch, error, limits, close }   what serve() of corespun/http takes; close() is called in
                                            each worker when it stops
  anything with fetch(request)              an app of hono, h3, itty-router, ...
  (request) => Response                     a function
  (req, res) => ...                         an app for node:http, of express, koa, connect, fastify, ...

Every worker loads the module and listens on the same port, so what workers must share goes into
a store (corespun/store). A worker that dies is replaced.

Options:
  -p, --port <n>         0: a free port; default: the app's setting, or 3000
      --host <address>   default: the app's setting, or 127.0.0.1; 0.0.0.0: all networks
      --fd <n>           serve on a listening socket that the process was started with, instead of a
                         port: 3 is the first one of systemd's socket activation
  -w, --workers <n>      threads; default: one per core
      --core <name>      native, or node (on node:http, one worker); also CORESPUN_HTTP_CORE
      --trust-proxy <p>  proxies in front, whose X-Forwarded headers state the client: how many (1), or
                         their addresses (loopback,10.0.0.0/8); default: the app's setting, or none
      --cert <file>      serve https with this certificate (PEM, with those that lead to its authority)
      --key <file>       its private key; both are read again when they change
      --dev-tls          serve https with a certificate for localhost that is made here, and that clients
                         have to trust explicitly: for development
      --drain <time>     how long a stop waits for open requests; default: 10s
      --close-delay <time>  how long a stop goes on accepting before that, while readiness() of
                         corespun/http responds 503; default: the app's setting, or 0
      --watch            serve the new code when the module or a file that it imports changes; requests
                         that are open are finished by the old code, which goes on serving while the
                         new code does not load; each version is a process of its own
      --access-log       print a line of JSON for each request, as accessLog() of corespun/http does
      --parallel-gc      let V8's helper threads take part in collections of young objects; by default
                         each worker does these alone, since requests wait for the slowest helper
      --allow-control    let corespun/observe's clients of this user drain it and reload its zones
      --no-observe       open no control socket (corespun top); also CORESPUN_OBSERVE=off
  -q, --quiet            do not print the address
  -h, --help             this text

Ctrl-C stops accepting and finishes open requests; twice stops at once.

Exit codes:
    0  stopped, and every open request got its response
    2  wrong arguments, no such module, no app in it, a port in use, no worker left
  130  stopped by SIGINT, 143 by SIGTERM, with requests cut: --drain was over, or a second signal came

Examples:
  corespun serve app.ts
  corespun serve app.ts --port 8080 --host 0.0.0.0 --workers 4
  corespun serve app.ts --watch
  corespun serve app.ts --port 443 --host 0.0.0.0 --cert fullchain.pem --key privkey.pem
`

export const HOST_HELP = `corespun host: run jobs of a file or a database, or offer a module over NATS

Usage: corespun host <module> --sqlite <file> --jobs <n> [options]
       corespun host <module> --postgres <address> --jobs <n> [options]
       corespun host <module> --nats <servers> [options]

  module    a file (score.ts, ./dist/score.js) or an installed package; TypeScript as for corespun run.
            Callers run its exports: connect(servers).zone(name).run('score', [text])

Code is deployed to hosts and never sent: callers may ask for a version of the module, which is a hash of its
files and of the lock file of its packages. Hosts with different versions run side by side.
--sqlite needs Node 22.13; --postgres needs npm install pg; --nats needs
npm install @nats-io/transport-node @nats-io/jetstream @nats-io/kv @nats-io/obj.
Servers that are not there yet are waited for.

Options:
      --sqlite <file>    take jobs from this file, which other processes of this machine may have too
      --postgres <addr>  take jobs from postgres://user@host/database; the password may be in PGPASSWORD
      --schema <name>    its schema that has them; default: corespun
      --nats <servers>   nats://a,b,c or tls://a,b,c; also CORESPUN_NATS
      --name <name>      what callers call it; default: the file's name without its ending
  -w, --workers <n>      threads; default: one per core
      --in-flight <n>    most calls accepted at once; more are refused with ZONE_FULL; default: 64
      --jobs <n>         most durable jobs that run at once; default: 0, it takes none
      --lease <time>     how long after its loss its jobs begin elsewhere; default: 10s
      --drain <time>     how long a stop waits for calls and jobs that run; default: 10s
      --replicas <n>     how many servers keep each job, the same in all that use them; default: 1
      --creds <file>     a .creds file: a JWT and its nkey
      --nkey <file>      a file with the seed of an nkey (SU...)
      --inbox <user>     the user's name, for servers with users of corespun fleet config
      --ca <file>        authorities of the servers' certificates (PEM), when not those of Node
      --cert <file>      this host's certificate (PEM), for servers that verify their clients
      --key <file>       its private key
      --module-version <text>  instead of the hash
      --allow-control    let corespun/observe's clients of this user drain it, reload its zones, retry jobs
      --no-observe       open no control socket (corespun top); also CORESPUN_OBSERVE=off
  -h, --help             this text

Ctrl-C accepts no more calls and finishes those that run; twice stops at once.

Exit codes:
    0  stopped, and every call had its reply
    2  wrong arguments, no such module, credentials or a certificate that are refused
  143  calls were cut because --drain was over, or the connection ended

Examples:
  corespun host mails.ts --sqlite work.db --jobs 4
  corespun host mails.ts --postgres postgres://shop@db/shop --jobs 4
  corespun host score.ts --nats nats://127.0.0.1:4222
  CORESPUN_NATS=tls://a,b,c corespun host dist/score.js --creds host.creds --in-flight 256
  corespun host score.ts --nats tls://a,b,c --ca ca.pem --cert host.pem --key host.key
`

export const FLEET_HELP = `corespun fleet: hosts and queues of jobs, live; and users for nats-server

Usage: corespun fleet --nats <servers> [options]
       corespun fleet --sqlite <file> [options]
       corespun fleet --postgres <address> [options]
       corespun fleet config <users.json> > users.conf
       corespun fleet create <users.json> --nats <servers> [options]

Shows who hosts what, with which version, how many calls and jobs run, what waits and since when, and what
has failed for good. On a terminal it is drawn anew each second until Ctrl-C; otherwise it is printed once.

Options:
      --sqlite <file>    the queues of a file; its hosts are not seen
      --postgres <addr>  those of a database, of --schema <name>; its hosts are not seen
      --nats <servers>   nats://a,b,c or tls://a,b,c; also CORESPUN_NATS
      --json             one document of JSON; with --watch one in each line
      --watch            continue until a signal, also if the output is not a terminal
      --every <time>     how often it is drawn; default: 1s
      --replicas <n>     of create: how many servers keep each stream; default: 1
      --lease <time>     of create: that of the hosts of these zones; default: 10s
${ACCESS}
  -h, --help             this text

A host that does not reply any more is shown for a minute, with the time of its last reply.

fleet config prints users for nats-server, each with the subjects that its roles need and no others. The
file is an array:
  [
    { "name": "host", "nkey": "UA...", "hosts": ["score"], "takes": ["score"] },
    { "name": "caller", "nkey": "UB...", "calls": ["score"], "submits": ["score"],
      "stores": ["prices"], "locks": ["report"] },
    { "name": "operator", "nkey": "UC...", "observes": true, "creates": true }
  ]
  nkey         the public key of an nkey; or password, best as a bcrypt hash
  hosts        zones that it hosts                calls    zones that it calls
  takes        zones whose jobs it runs           submits  zones whose jobs it submits and reads
  stores       stores that it reads and writes    locks    locks that it takes
  largeValues  true: values larger than a message
  observes     true: corespun fleet
  creates      true: corespun fleet create, and with it all that the account has
A store whose values end is { "name": "sessions", "ttlMs": 3600000 }.

fleet create makes the streams that these users need, as a user with "creates" or without roles: no other
one may, since a server permits the names of streams and not what they contain. Run it again when roles
are added.

The server's own configuration includes it by the line: include users.conf. A connection names its user:
connect(servers, { nkey, inbox: 'caller' }), corespun host --nkey host.nkey --inbox host.

Exit codes:
    0  shown, or ended by a signal
    2  wrong arguments, no server, a file that cannot be read, an incomplete user

Examples:
  corespun fleet --nats nats://127.0.0.1:4222
  corespun fleet --nats tls://a,b,c --nkey operator.nkey --inbox operator --json | jq .queues
  corespun fleet create users.json --nats tls://a,b,c --nkey operator.nkey --inbox operator --replicas 3
`

export const JOBS_HELP = `corespun jobs: durable jobs: list, show, run anew, cancel, forget, pause

Usage: corespun jobs <engine> [verb] [zone] [keys] [options]

  engine    sqlite:work.db, postgres://user@host/database, nats://a,b,c or tls://a,b,c
  zone      the name of the hosts whose jobs they are

Verbs:
  (none)                 each zone: whether it is paused, and how many jobs are in which state
  list <zone>            its jobs, or those of --state
  dead <zone>            those that have failed for good, with their last error
  show <zone> <key>      how far one is, with the errors of its last ten failures
  retry <zone> <keys>    run dead ones anew, with all their attempts; --all: all of them
  cancel <zone> <keys>   end those that wait or run; --state waiting: all that wait
  forget <zone> <keys>   forget how they ended, so that their keys are free; --state dead: all that ended so
  pause <zone>           hosts begin no job any more; those that run go on
  resume <zone>          hosts begin jobs again

Options:
      --state <name>     of list: waiting, running, scheduled, done, dead or cancelled
      --limit <n>        of list and dead: most jobs; default: 100
      --all              of retry: all dead jobs
      --json             one document of JSON in each line
      --schema <name>    of Postgres; default: corespun
${ACCESS}
  -h, --help             this text

Ctrl-C ends retry --all, cancel --state and forget --state; what is done by then stays done.

Exit codes:
    0  done
    1  a zone has no queue of jobs; a key has no job, or one in another state
    2  wrong arguments, no server, a file that cannot be used
  130  ended by SIGINT, 143 by SIGTERM

Examples:
  corespun jobs sqlite:work.db
  corespun jobs sqlite:work.db dead bills
  corespun jobs sqlite:work.db retry bills invoice-17 invoice-18
  corespun jobs nats://127.0.0.1:4222 list bills --state running --json | jq -r .key
`

export const RUNS_HELP = `corespun runs: durable runs, listed, shown, signalled, cancelled, run anew, copied

Usage: corespun runs <engine> [verb] [name] [keys] [options]

  engine    sqlite:work.db, postgres://user@host/database, nats://a,b,c or tls://a,b,c
  name      of the definition: the first argument of durable()

Verbs:
  (none)                 each definition, and how many of its runs have not ended
  list <name>            its runs, or those of --state
  show <name> <key>      one run: its state, its result or error, and each step with its key
  signal <name> <key> <signal> [json]
                         send it a signal, with a value that is written as JSON
  cancel <name> <keys>   interrupt runs: their finalizers run; --now: end them without
  retry <name> <keys>    run those again that have failed, from the step that has failed, or those that wait
                         for code that fits; --from: drop what was recorded from that step on
  fork <name> <key> --from <step>
                         start a copy that goes on at the step; prints its key
  forget <name> <keys>   delete what is kept of runs that have ended, so that their keys are free

Options:
      --state <name>     of list: running, waiting, diverged, cancelling, done, failed or cancelled
      --limit <n>        of list: most runs; default: 100
      --from <step>      of retry and fork: the key of a step as show prints it, such as charge#1
      --as <key>         of fork: the key of the copy; default: a random UUID
      --now              of cancel
      --json             one document of JSON in each line
      --schema <name>    of Postgres; default: corespun
${ACCESS}
  -h, --help             this text

Nothing is run here: the processes that offer the definition do it.

Exit codes:
    0  done
    1  a key has no run, or one in another state
    2  wrong arguments, no server, a file that cannot be used
  130  ended by SIGINT, 143 by SIGTERM

Examples:
  corespun runs sqlite:work.db
  corespun runs sqlite:work.db list checkout --state failed
  corespun runs sqlite:work.db show checkout order-17
  corespun runs sqlite:work.db signal checkout order-17 approved true
  corespun runs sqlite:work.db retry checkout order-17 --from invoice#1
`

export const TEST_HELP = `corespun test: programs under many seeds, on all cores

Usage: corespun test [options] <files>

  files     programs, or files of node:test, that call check() of corespun/test; TypeScript as for
            corespun run

Each file runs in several processes, as node would run it; each plays a part of the seeds. Printed of a check
that has failed are its first seed, its story, and the command that plays it again. Other tests of a file run
in each process. A check that is expected to fail has to find it in each part.

Options:
      --seeds <n>        how many seeds each check plays; default: what it has itself. CORESPUN_SEEDS is the
                         same; CORESPUN_SEED=77 plays seed 77 alone
  -w, --workers <n>      processes at once, and parts of each file; default: one per core
  -t, --timeout <time>   longest time for one process: 30s, 10m; default: no limit
      --json             one line of JSON for each check
  -h, --help             this text

CORESPUN_SEEDS_PART=2/4 plays the second of four parts in any runner, such as vitest, or on another machine.

Exit codes:
    0  no seed has failed
    1  a seed has failed, or something else in a file; or a file has called no check()
    2  wrong arguments, no such file
  130  ended by SIGINT, 143 by SIGTERM

Examples:
  corespun test --seeds 10000 shop.test.ts
  CORESPUN_SEED=77 corespun test shop.test.ts
  corespun test --json tests/*.check.ts | jq -r 'select(.seed) | .message'
`

export const TOP_HELP = `corespun top: what a running process does, drawn anew each second

Usage: corespun top [pid|name] [options]

Shows what each worker runs and for how long; queues by zone, priority and tenant; functions and routes with
their rates, p50 and p99; jobs of the fleet, and dead ones with their errors; stages of arrows that run often;
stores, locks, threads; what was refused. Without a terminal it is printed once.

  pid       a process of this user that has a control socket: corespun serve, run and host open one after a
            second (--no-observe or CORESPUN_OBSERVE=off: never), a program by observe() of corespun/observe;
            may be omitted if there is only one
  name      of its module, or what observe({ name }) names

The first look starts metrics in the process, until it ends. Rates and times are those of the last second.

Options:
      --once             print it once
      --json             the totals as one document of JSON; its fields: docs/guide/observe-figures.md
      --every <time>     how often it is drawn; default: 1s
  -h, --help             this text

Keys:
  1-9, tab   one table, 0 all of them      up, down  its rows
  enter      reload the zone of the row, retry its job: where the process was started with --allow-control
  d          drain, likewise               q, Ctrl-C end

Exit codes:
    0  ended by a key or a signal, or printed
    1  the process has ended meanwhile
    2  wrong arguments, no such process, or several of that name

Examples:
  corespun top
  corespun top app --every 5s
  corespun top 4711 --json | jq '.routes | map({route, requests})'
`

export const STACKS_HELP = `corespun stacks: what every thread of a running process does now

Usage: corespun stacks <pid|name> [options]

Prints the JavaScript stack of each thread, also of one in an endless loop, and does not stop it; the task
of each worker with its age and its caller; fibers that wait; and the same of the processes that are workers
of a zone.

  pid       a process of this user that has a control socket: corespun serve, run and host open one after a
            second (--no-observe or CORESPUN_OBSERVE=off: never), a program by observe() of corespun/observe
  name      of its module, or what observe({ name }) names

Options:
      --json             one document of JSON
      --timeout <time>   how long to wait for each process; default: 10s
  -h, --help             this text

Exit codes:
    0  printed
    1  a thread or a process did not answer; the others are printed
    2  wrong arguments, no such process, or several of that name

Examples:
  corespun stacks app
  corespun stacks 4711 --json | jq '.[0].threads[].frames[0]'
`

export const PROFILE_HELP = `corespun profile: where the threads of a running process spend their CPU time

Usage: corespun profile <pid|name> [options]

Writes one file for all threads of the process, and of processes that are workers of a zone. Frames lie under
their thread and, where that is known, under the route, task, stage or job that they worked for.

  pid, name  as for corespun stacks

Options:
  -s, --seconds <n>      how long; default: 10. Ctrl-C ends it early, and the file has what there is
  -o, --output <file>    default: <name>-<pid>.cpuprofile, .speedscope.json or .heapprofile
      --format <name>    cpuprofile (Chrome, VS Code; the threads follow each other in time) or speedscope
                         (https://speedscope.app, a lane for each thread); default: cpuprofile
      --heap             what is allocated and still used, instead of CPU time
  -h, --help             this text

Exit codes:
    0  written
    1  a thread or a process did not answer; the file has the others
    2  wrong arguments, no such process, or several of that name, a file that cannot be written; the process
       has ended meanwhile

Examples:
  corespun profile app --seconds 30
  corespun profile 4711 --format speedscope --output peak.json
`
