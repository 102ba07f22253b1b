/**
 * jest on native ES modules, with the plugin if PLUGIN is yes.
 * V8 counts the coverage; Babel's is in test/plugin.
 */
export default {
  cacheDirectory: '<rootDir>/cache',
  testMatch: ['<rootDir>/program.jest.js'],
  transform: process.env.PLUGIN === 'yes' ? { '\\.js$': 'corespun/plugin/jest' } : {},
  coverageProvider: 'v8',
  coverageReporters: ['json-summary'],
  collectCoverageFrom: ['src/program.js'],
}
