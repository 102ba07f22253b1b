/**
 * A CommonJS module whose exports no static look can find.
 */
const name = ['up', 'per'].join('')
module.exports = { [name]: (item) => item.toUpperCase(), other: 1 }
