/**
 * The programs of the pages about heavy libraries as files, in a project that has these libraries installed.
 *
 * The libraries are installed below .set-up/ from a lock file of their own, without their install scripts,
 * which would download from elsewhere than npm. The project has no model of ONNX, so one is written: layers
 * of a product of matrices and a hyperbolic tangent, which batches of any size pass through.
 */
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { filesBelow, inRoot, installCopy, MEMORY } from '../../scripts/set-up/index.mjs'
import { blocksIn, nameOf } from '../docs/blocks.mjs'

const FOLDER = join(MEMORY, 'heavy')
const LAYERS = 64
const WIDTH = 256
/** The type of an element, in onnx.proto. */
const FLOAT = 1

/** The blocks of all pages, with those that are not programs. */
export const blocks = filesBelow(inRoot('docs', 'guide'), isPage).flatMap((path) =>
  blocksIn(path.slice(inRoot().length), readFileSync(path, 'utf8')),
)

/** Whether a document is run here, and not by test/docs. @param {string} path */
export function isPage(path) {
  return /\bguide[\\/]heavy[\w-]*\.md$/.test(path)
}

/** A new project with the programs and the model. @returns {Promise<string>} Its folder. */
export async function project() {
  await installCopy('the libraries of the guide', inRoot('test', 'heavy', 'libraries'), FOLDER)
  const folder = mkdtempSync(join(FOLDER, 'project-'))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(inRoot(), join(folder, 'node_modules', 'corespun'), 'junction')
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  writeFileSync(join(folder, 'model.onnx'), model())
  copyFileSync(inRoot('test', 'heavy', 'statements.mjs'), join(folder, 'statements.mjs'))
  for (const { text } of blocks)
    if (nameOf(text) !== undefined) writeFileSync(join(folder, nameOf(text)), text)
  return folder
}

/** Fields of protobuf: of bytes, and of an integer. */
const field = (number, ...parts) => {
  const bytes = Buffer.concat(parts.map((part) => Buffer.from(part)))
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes])
}
const integer = (number, value) => Buffer.concat([varint(number * 8), varint(value)])

function varint(value) {
  const bytes = []
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128)
  return Buffer.from([...bytes, value])
}

/** The bytes of a model from `x` to `y`, both of [batch, WIDTH]: onnx.proto has the numbers of the fields. */
function model() {
  const layers = Array.from({ length: LAYERS }, (_, n) => n)
  const from = (n) => (n === 0 ? 'x' : n === LAYERS ? 'y' : `t${n}`)
  const node = (type, inputs, output) =>
    field(1, ...inputs.map((name) => field(1, name)), field(2, output), field(4, type))
  const nodes = layers.flatMap((n) => [
    node('MatMul', [from(n), `w${n}`], `m${n}`),
    node('Tanh', [`m${n}`], from(n + 1)),
  ])
  const weights = layers.map((n) => {
    const values = Float32Array.from({ length: WIDTH ** 2 }, (_, at) => (((at * 7919) % 1000) - 500) / 8000)
    const shape = [integer(1, WIDTH), integer(1, WIDTH), integer(2, FLOAT)]
    return field(5, ...shape, field(8, `w${n}`), field(9, Buffer.from(values.buffer)))
  })
  const shape = field(2, field(1, field(2, 'batch')), field(1, integer(1, WIDTH)))
  const [x, y] = [11, 12].map((number, n) =>
    field(number, field(1, 'xy'[n]), field(2, field(1, integer(1, FLOAT), shape))),
  )
  const graph = field(7, ...nodes, field(2, 'layers'), ...weights, x, y)
  return Buffer.concat([integer(1, 8), graph, field(8, integer(2, 17))])
}
