/**
 * A module that is no JavaScript.
 */
export const broken = (item) => {{
