/**
 * A module that is not JavaScript.
 */
export const broken = (item) => {{
