/**
 * The page of the staff: sends a file of products as it is, and shows the lines that do not fit.
 * The browser has the password.
 */
import { $, ask, element, on } from './api.js'

on($('upload'), 'submit', async ({ target }) => {
  const { products, faults, leftOut } = await ask('PUT', '/staff/products', target.file.files[0])
  const rows = faults.map(({ line, fault }) => element('li', `Line ${line}: ${fault}`))
  if (leftOut > 0) rows.push(element('li', `… and ${leftOut} others`))
  $('faults').replaceChildren(element('li', `Products stored: ${products}`), ...rows)
})
