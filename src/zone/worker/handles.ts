/**
 * What is loaded before a thread's first task: the handles of stores and locks, which tasks may contain, and
 * what `map` runs (docs/design/zones.md, Limits, about files left open).
 */
/* oxlint-disable import/no-unassigned-import -- loading them is what this file is for */
import '../../store/index.ts'
import '../../sync/index.ts'
import '../parallel/chunks.ts'
