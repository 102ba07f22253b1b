/**
 * Uploads of 50 MB that are refused, by clients that people use: each sees why, each time.
 *
 * Over HTTP/1.1, without TLS and with it, on both cores, and over HTTP/2 on the native one. For more forms of
 * uploads by the clients of Node see src/http/uploads.test.ts. A client that is not installed is skipped.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { serve } from 'corespun/http'
import { share } from '../../dist/base/part.test.support.js'
import { makeCertificate } from '../../dist/http/tls/make.js'
import { run } from '../../scripts/set-up/index.mjs'

const ROUNDS = share(10)
const UPLOAD_BYTES = 50_000_000
/** For so many uploads by one client on a busy machine, and for compiling it. */
const SECONDS_MAX = 300

const folder = mkdtempSync(join(tmpdir(), 'corespun-upload-clients-'))
after(() => rmSync(folder, { recursive: true }))
const file = (name, text = '') => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const GO = `package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	body := make([]byte, ${UPLOAD_BYTES})
	for round := 0; round < ${ROUNDS}; round++ {
		transport := &http.Transport{
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, NextProtos: []string{os.Args[2]}},
			ForceAttemptHTTP2: os.Args[2] == "h2",
		}
		client := http.Client{Transport: transport}
		response, err := client.Post(os.Args[1], "application/octet-stream", bytes.NewReader(body))
		if err != nil {
			fmt.Println(err)
			continue
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		fmt.Println(response.StatusCode)
		transport.CloseIdleConnections()
	}
}
`

const JAVA = `import java.net.URI;
import java.net.http.*;

public class Upload {
  public static void main(String[] args) throws Exception {
    var body = new byte[${UPLOAD_BYTES}];
    for (int round = 0; round < ${ROUNDS}; round++) {
      try {
        var client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        var request = HttpRequest.newBuilder(URI.create(args[0]))
            .POST(HttpRequest.BodyPublishers.ofByteArray(body)).build();
        System.out.println(client.send(request, HttpResponse.BodyHandlers.ofString()).statusCode());
      } catch (java.io.IOException error) {
        System.out.println(error);
      }
    }
  }
}
`

/** Runs a program and returns what it printed. */
async function printed(command, words) {
  const { code, output } = await run(command, words, { secondsMax: SECONDS_MAX, cwd: folder })
  assert.equal(code, 0, `${command}: ${output}`)
  return output.trim()
}

/** By name: how to find it, what to prepare, and the statuses of its uploads to a URL, in lines. */
const CLIENTS = {
  fetch: {
    version: [process.execPath, '--version'],
    tls: false, // it would need a variable of the environment
    prepare() {},
    async upload(url) {
      const found = []
      for (let round = 0; round < ROUNDS; round += 1) {
        const init = { method: 'POST', body: new Uint8Array(UPLOAD_BYTES) }
        found.push(
          await fetch(url, init).then(async (response) => (await response.text(), response.status), String),
        )
      }
      return found.join('\n')
    },
  },
  curl: {
    version: ['curl', '--version'],
    tls: true,
    prepare: () => truncateSync(file('body'), UPLOAD_BYTES),
    async upload(url, protocol) {
      const version = protocol === 'h2' ? '--http2' : '--http1.1'
      const words = `-sk ${version} -o /dev/null -w %{http_code} -X POST -T body ${url}`.split(' ')
      const found = []
      for (let round = 0; round < ROUNDS; round += 1) {
        const { code, output } = await run('curl', words, { secondsMax: SECONDS_MAX, cwd: folder })
        found.push(code === 0 ? output.trim() : `exit code ${code}: ${output}`)
      }
      return found.join('\n')
    },
  },
  Go: {
    version: ['go', 'version'],
    tls: true,
    async prepare() {
      mkdirSync(join(folder, 'go'))
      const source = file('go/main.go', GO)
      await printed('go', ['build', '-o', join(folder, 'go', 'upload'), source])
    },
    upload: (url, protocol) => printed(join(folder, 'go', 'upload'), [url, protocol]),
  },
  Java: {
    version: ['java', '-version'],
    tls: false, // it has no switch that accepts a certificate of a test
    prepare: () => file('Upload.java', JAVA),
    upload: (url) => printed('java', ['-XX:-UsePerfData', 'Upload.java', url]),
  },
}

const CERTIFICATE = makeCertificate({ name: 'localhost', hosts: ['localhost', '127.0.0.1'] })

/** Core, whether with TLS, protocol. */
const WAYS = [
  ['native', false, 'http/1.1'],
  ['node', false, 'http/1.1'],
  ['native', true, 'http/1.1'],
  ['node', true, 'http/1.1'],
  ['native', true, 'h2'],
]

function start(core, tls, bodyBytesMax) {
  // node:http reads a body that nobody has read to its end, unless the connection closes.
  const headers = core === 'node' ? { connection: 'close' } : {}
  return serve({
    core,
    port: 0,
    quiet: true,
    error: () => undefined,
    limits: { bodyBytesMax },
    routes: {
      '/early': () => new Response('who are you?', { status: 401, headers }),
      '/read': async (request) => String((await request.arrayBuffer()).byteLength),
    },
    ...(tls ? { tls: CERTIFICATE } : {}),
  })
}

for (const [name, { version, tls: hasTls, prepare, upload }] of Object.entries(CLIENTS)) {
  const isThere = spawnSync(version[0], version.slice(1)).status === 0
  const skip = isThere ? false : `${name} is not installed: its uploads are not tested`
  test(`${name} sees why its uploads of 50 MB are refused, ${ROUNDS} of ${ROUNDS}`, { skip }, async () => {
    await prepare()
    for (const [core, tls, protocol] of WAYS) {
      if (tls && !hasTls) continue
      const small = await start(core, tls, 1_000_000)
      const large = await start(core, tls, 2 * UPLOAD_BYTES)
      try {
        for (const [url, status] of [
          [`${small.url}/read`, '413'],
          [`${large.url}/early`, '401'],
        ]) {
          const found = (await upload(url, protocol)).split('\n')
          assert.deepEqual(found, new Array(ROUNDS).fill(status), `${core}, ${protocol}: ${url}`)
        }
      } finally {
        await Promise.all([small.close({ timeoutMs: 0 }), large.close({ timeoutMs: 0 })])
      }
    }
  })
}
