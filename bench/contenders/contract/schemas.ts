/**
 * The order's schemas by zod, valibot and arktype, and as JSON Schema for fastify: the same demands in each.
 *
 * The limit of the query is a number for every handler: zod coerces it, the others convert it.
 */
import { type } from 'arktype'
import * as v from 'valibot'
import { z } from 'zod'

const CURRENCIES = ['EUR', 'USD', 'GBP'] as const
const SOURCES = ['web', 'app'] as const

const zodOrder = z.object({
  reference: z.string().min(1).max(40),
  currency: z.enum(CURRENCIES),
  total: z.number().nonnegative(),
  express: z.boolean(),
  customer: z.object({
    id: z.int(),
    name: z.string().min(1).max(80),
    email: z.email(),
    phone: z.string().max(40).optional(),
  }),
  address: z.object({
    street: z.string().min(1),
    city: z.string().min(1),
    zip: z.string().max(12),
    country: z.string().length(2),
  }),
  lines: z
    .array(
      z.object({
        sku: z.string().min(1).max(20),
        title: z.string().max(120),
        quantity: z.int().min(1),
        price: z.number().nonnegative(),
      }),
    )
    .min(1)
    .max(100),
  tags: z.array(z.string().max(20)).max(10),
  note: z.string().max(1000).optional(),
})

export const byZod = {
  params: z.object({ shop: z.string().regex(/^\d+$/) }),
  query: z.object({ source: z.enum(SOURCES), limit: z.coerce.number().int().min(1).max(100) }),
  body: zodOrder,
  responses: {
    200: z.object({ shop: z.string(), source: z.string(), limit: z.number(), order: zodOrder }),
  },
}

const short = (length: number) => v.pipe(v.string(), v.maxLength(length))
const filled = v.pipe(v.string(), v.minLength(1))
const positive = v.pipe(v.number(), v.minValue(0))
const valibotOrder = v.object({
  reference: v.pipe(v.string(), v.minLength(1), v.maxLength(40)),
  currency: v.picklist(CURRENCIES),
  total: positive,
  express: v.boolean(),
  customer: v.object({
    id: v.pipe(v.number(), v.integer()),
    name: v.pipe(v.string(), v.minLength(1), v.maxLength(80)),
    email: v.pipe(v.string(), v.email()),
    phone: v.optional(short(40)),
  }),
  address: v.object({
    street: filled,
    city: filled,
    zip: short(12),
    country: v.pipe(v.string(), v.length(2)),
  }),
  lines: v.pipe(
    v.array(
      v.object({
        sku: v.pipe(v.string(), v.minLength(1), v.maxLength(20)),
        title: short(120),
        quantity: v.pipe(v.number(), v.integer(), v.minValue(1)),
        price: positive,
      }),
    ),
    v.minLength(1),
    v.maxLength(100),
  ),
  tags: v.pipe(v.array(short(20)), v.maxLength(10)),
  note: v.optional(short(1000)),
})

export const byValibot = {
  params: v.object({ shop: v.pipe(v.string(), v.regex(/^\d+$/)) }),
  query: v.object({
    source: v.picklist(SOURCES),
    limit: v.pipe(v.string(), v.transform(Number), v.integer(), v.minValue(1), v.maxValue(100)),
  }),
  body: valibotOrder,
  responses: {
    200: v.object({ shop: v.string(), source: v.string(), limit: v.number(), order: valibotOrder }),
  },
}

const arktypeOrder = type({
  reference: '1 <= string <= 40',
  currency: "'EUR' | 'USD' | 'GBP'",
  total: 'number >= 0',
  express: 'boolean',
  customer: {
    id: 'number.integer',
    name: '1 <= string <= 80',
    email: 'string.email',
    'phone?': 'string <= 40',
  },
  address: { street: 'string >= 1', city: 'string >= 1', zip: 'string <= 12', country: 'string == 2' },
  lines: type({
    sku: '1 <= string <= 20',
    title: 'string <= 120',
    quantity: 'number.integer >= 1',
    price: 'number >= 0',
  })
    .array()
    .atLeastLength(1)
    .atMostLength(100),
  tags: type('string <= 20').array().atMostLength(10),
  'note?': 'string <= 1000',
})

export const byArktype = {
  params: type({ shop: '/^\\d+$/' }),
  query: type({ source: "'web' | 'app'", limit: type('string.integer.parse').to('1 <= number <= 100') }),
  body: arktypeOrder,
  responses: { 200: type({ shop: 'string', source: 'string', limit: 'number', order: arktypeOrder }) },
}

const text = (minLength: number, maxLength?: number) => ({
  type: 'string',
  minLength,
  ...(maxLength === undefined ? {} : { maxLength }),
})
const object = (properties: Record<string, object>, optional: readonly string[] = []) => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
})
const ajvOrder = object(
  {
    reference: text(1, 40),
    currency: { type: 'string', enum: CURRENCIES },
    total: { type: 'number', minimum: 0 },
    express: { type: 'boolean' },
    customer: object(
      {
        id: { type: 'integer' },
        name: text(1, 80),
        email: { type: 'string', format: 'email' },
        phone: text(0, 40),
      },
      ['phone'],
    ),
    address: object({ street: text(1), city: text(1), zip: text(0, 12), country: text(2, 2) }),
    lines: {
      type: 'array',
      minItems: 1,
      maxItems: 100,
      items: object({
        sku: text(1, 20),
        title: text(0, 120),
        quantity: { type: 'integer', minimum: 1 },
        price: { type: 'number', minimum: 0 },
      }),
    },
    tags: { type: 'array', maxItems: 10, items: text(0, 20) },
    note: text(0, 1000),
  },
  ['note'],
)

export const byAjv = {
  params: object({ shop: { type: 'string', pattern: '^\\d+$' } }),
  querystring: object({
    source: { type: 'string', enum: SOURCES },
    limit: { type: 'integer', minimum: 1, maximum: 100 },
  }),
  body: ajvOrder,
  response: {
    200: object({
      shop: { type: 'string' },
      source: { type: 'string' },
      limit: { type: 'integer' },
      order: ajvOrder,
    }),
  },
}
