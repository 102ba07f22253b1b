/**
 * The few pieces of HTML that the page is made of, each escaping what it is given.
 *
 * A string of type Html has been escaped or made here; plain text becomes Html only through `escaped`.
 */

/** Markup, safe to put into the page. */
export type Html = string & { readonly html: unique symbol }

/** Text escaped for HTML, also inside an attribute. */
export function escaped(text: string): Html {
  const names: Readonly<Record<string, string>> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    "'": '&#39;',
  }
  return text.replace(/[&<>"']/g, (sign) => names[sign]) as Html
}

/** An element; text among the children is escaped, attributes that are '' are left out. */
export function element(
  name: string,
  attributes: Readonly<Record<string, string | number>>,
  ...children: readonly (Html | readonly Html[])[]
): Html {
  const given = Object.entries(attributes).filter(([, value]) => value !== '')
  const words = given.map(([key, value]) => ` ${key}="${escaped(String(value))}"`)
  return `<${name}${words.join('')}>${children.flat().join('')}</${name}>` as Html
}

/** Cells of a row: `td` by default. */
export function row(cells: readonly string[], name: 'td' | 'th' = 'td'): Html {
  return element('tr', {}, ...cells.map((cell) => element(name, {}, escaped(cell))))
}

/** A table that scrolls by itself when the screen is narrower. */
export function scrolled(kind: string, ...parts: readonly Html[]): Html {
  return element('div', { class: 'scroll' }, element('table', { class: kind }, ...parts))
}

/** A word for an outcome. */
export function badge(holds: boolean | undefined, word: string): Html {
  const kind = holds === undefined ? 'open' : holds ? 'yes' : 'no'
  return element('span', { class: `badge ${kind}` }, escaped(word))
}

/** Small print; nothing for ''. */
export function note(text: string): Html {
  return text === '' ? ('' as Html) : element('p', { class: 'note' }, escaped(text))
}

export function lines(texts: readonly string[]): Html {
  return texts.map(escaped).join('<br>') as Html
}
