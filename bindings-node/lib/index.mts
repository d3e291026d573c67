// The same classes for `import` as for `require`: an ES module in front of the CommonJS one.
export * from './index.js'
