/**
 * Which compiled writer an object of a registered class gets, by class and shape.
 *
 * Code is generated when both have been used often enough, and a class that never settles on few shapes
 * starts over instead of growing.
 */
import type { ClassEntry, ClassWriter } from '../class-entry.ts'
import { checkState } from './classes.ts'
import { TREE_DEPTH_MAX } from '../format.ts'
import { generateWriter, hasOnlyFields } from '../generate.ts'
import type { WriteShape } from './shapes.ts'

/** Objects of one class and shape that must pass before code is generated for them. */
const CLASS_USES_MIN = 16
/** Shapes of one class that are remembered. */
const CLASS_SHAPES_MAX = 16

/**
 * The writer of one class and shape; generated when both have been used often enough.
 * @param object The object that was written. @throws {Refusal} when it has state in no field.
 */
export function classWriter(entry: ClassEntry, shape: WriteShape, object: object): ClassWriter {
  if (!hasOnlyFields(object, shape.keys.length)) checkState(object)
  let writer = entry.writers.get(shape)
  if (writer === undefined) {
    if (entry.writers.size >= CLASS_SHAPES_MAX) entry.writers.clear()
    writer = { prototype: entry.prototype, uses: 0, write: undefined }
    entry.writers.set(shape, writer)
  }
  if (writer.write === undefined && shape.write !== undefined && ++writer.uses >= CLASS_USES_MIN) {
    writer.write = generateWriter(shape, TREE_DEPTH_MAX, entry)
  }
  return writer
}
